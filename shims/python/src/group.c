/* SPDX-License-Identifier: BSD-2-Clause */
/* Several queue pairs of one session: what it holds of each, by index. */
#include "negotiation.h"

#include <string.h>

/* One entry: (connector, qp[, memory]). */
static bool hold_entry(PyObject *entry, struct resources *resources,
                       struct ndx_session_queue_pair *out)
{
	PyObject *connector = Py_None;
	PyObject *qp = Py_None;
	PyObject *region = Py_None;

	if (!PyTuple_Check(entry)) {
		PyErr_SetString(PyExc_TypeError, "a queue pair is (connector, qp[, memory])");
		return false;
	}
	if (!PyArg_ParseTuple(entry, "OO|O;a queue pair is (connector, qp[, memory])", &connector,
	                      &qp, &region) ||
	    !resources_hold(resources, connector, qp, region, &out->memory))
		return false;
	if (resources->connector != NULL)
		out->connector = resources->connector->handle;
	if (resources->qp != NULL)
		out->qp = resources->qp->handle;
	return true;
}

struct group *group_hold(PyObject *tuple, struct ndx_session_queue_pair *list)
{
	size_t count = (size_t)PyTuple_Size(tuple);
	struct group *group = PyMem_Calloc(1, sizeof(*group) + count * sizeof(struct resources));

	if (group == NULL) {
		PyErr_NoMemory();
		return NULL;
	}
	group->count = (uint32_t)count;
	memset(list, 0, count * sizeof(*list));
	for (size_t i = 0; i < count; i++) {
		if (!hold_entry(PyTuple_GetItem(tuple, (Py_ssize_t)i), &group->at[i], &list[i])) {
			group_drop(group);
			return NULL;
		}
	}
	return group;
}

void group_drop(struct group *group)
{
	PyObject *type, *value, *trace;

	if (group == NULL)
		return;
	PyErr_Fetch(&type, &value, &trace);
	for (uint32_t i = 0; i < group->count; i++)
		resources_drop(&group->at[i]);
	if (group->adding != NULL)
		Py_DECREF(&group->adding->ob_base);
	PyMem_Free(group);
	PyErr_Restore(type, value, trace);
}

void groups_add(struct group **groups, struct group *group)
{
	group->next = *groups;
	*groups = group;
}

void groups_settle(struct group **groups)
{
	struct group *failed = NULL;

	for (struct group **link = groups; *link != NULL;) {
		struct group *g = *link;
		struct operation *op = g->adding;
		enum ndx_status st = op != NULL ? ndx_overlapped_status(&op->ov) : NDX_PENDING;

		if (st == NDX_PENDING) {
			link = &g->next;
		} else if (st == NDX_OK) {
			g->first = (uint32_t)op->ov.information;
			g->adding = NULL;
			Py_DECREF(&op->ob_base); /* the program has it, too, or nothing follows */
			link = &g->next;
		} else {
			*link = g->next;
			groups_add(&failed, g);
		}
	}
	groups_drop(&failed);
}

/* Take the queue pair of that index out; false: there is none. */
static bool take(struct group **groups, uint32_t index, struct resources *out)
{
	for (struct group **link = groups; *link != NULL; link = &(*link)->next) {
		struct group *g = *link;
		struct resources *r;

		if (g->adding != NULL || index < g->first || index - g->first >= g->count)
			continue;
		r = &g->at[index - g->first];
		if (r->connector == NULL)
			return false;
		*out = *r;
		memset(r, 0, sizeof(*r));
		if (++g->gone == g->count) {
			*link = g->next;
			PyMem_Free(g);
		}
		return true;
	}
	return false;
}

void groups_remove(struct group **groups, uint32_t first, uint32_t count)
{
	struct resources resources;

	/* What is dropped may run other code of the program, which may change the list. */
	for (uint32_t i = 0; i < count; i++)
		if (take(groups, first + i, &resources))
			resources_drop(&resources);
}

void groups_drop(struct group **groups)
{
	while (*groups != NULL) {
		struct group *group = *groups;

		*groups = group->next;
		group_drop(group);
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Callbacks of servers and managers, whose end waits for them. */
#include "negotiation.h"

void running_begin(struct object *owner, struct running **list, struct running *running)
{
	running->thread = PyThread_get_thread_ident();
	running->counted = Py_REFCNT(&owner->ob_base) > 0;
	if (running->counted)
		Py_INCREF(&owner->ob_base);
	running->next = *list;
	running->link = list;
	if (running->next != NULL)
		running->next->link = &running->next;
	*list = running;
}

void running_end(struct object *owner, struct running *running)
{
	*running->link = running->next;
	if (running->next != NULL)
		running->next->link = running->link;
	if (running->counted)
		object_drop_later(owner);
}

bool running_on(const struct running *list, unsigned long thread)
{
	for (const struct running *r = list; r != NULL; r = r->next)
		if (thread == 0 || thread == r->thread)
			return true;
	return false;
}

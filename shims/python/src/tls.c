/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS of sessions and servers, from the tuple that ndx/_tls.py makes. */
#include "negotiation.h"

#include <stdlib.h>

bool tls_of(PyObject *object, struct tls *tls)
{
	PyObject *names;
	uint32_t verify;
	int no_resumption;

	ndx_tls_attr_init(&tls->attr);
	tls->names = NULL;
	tls->wanted = object != Py_None;
	if (!tls->wanted)
		return true;
	/* The texts are those of the tuple, which the caller's arguments hold. */
	if (!PyArg_ParseTuple(object, "zzzzO&zO!p;tls is made by ndx.Tls", &tls->attr.cert_file,
	                      &tls->attr.key_file, &tls->attr.ca_file, &tls->attr.psk_file,
	                      pyndx_u32, &verify, &tls->attr.server_name, &PyTuple_Type, &names,
	                      &no_resumption))
		return false;
	tls->attr.verify = (enum ndx_tls_verify)verify;
	tls->attr.no_resumption = no_resumption != 0;
	tls->attr.peer_name_count = (size_t)PyTuple_Size(names);
	if (tls->attr.peer_name_count == 0)
		return true;
	tls->names = calloc(tls->attr.peer_name_count, sizeof(*tls->names));
	if (tls->names == NULL) {
		PyErr_NoMemory();
		return false;
	}
	for (size_t i = 0; i < tls->attr.peer_name_count; i++) {
		tls->names[i] =
			PyUnicode_AsUTF8AndSize(PyTuple_GetItem(names, (Py_ssize_t)i), NULL);
		if (tls->names[i] == NULL) {
			tls_free(tls);
			return false;
		}
	}
	tls->attr.peer_names = tls->names;
	return true;
}

void tls_free(struct tls *tls)
{
	free(tls->names);
	tls->names = NULL;
}

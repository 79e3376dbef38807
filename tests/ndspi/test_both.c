/* SPDX-License-Identifier: BSD-2-Clause */
/* C and C++ in one program call the same objects: those of the library, those of a C++ class, and
 * those of a C structure. */
#include "both.h"

void both_use_in_c(IND2Overlapped *object, HRESULT cancelled, HRESULT result)
{
	OVERLAPPED ov;
	IUnknown *same = NULL;
	IND2Overlapped *again = NULL;

	memset(&ov, 0, sizeof(ov));
	ov.Internal = (ULONG)result;
	assert_int_equal(object->lpVtbl->AddRef(object), 2);
	assert_int_equal(object->lpVtbl->Release(object), 1);
	assert_status(object->lpVtbl->QueryInterface(object, &IID_IUnknown, OUT(same)), S_OK);
	assert_status(same->lpVtbl->QueryInterface(same, &IID_IND2Overlapped, OUT(again)), S_OK);
	assert_ptr_equal(again, object);
	assert_int_equal(same->lpVtbl->Release(same), 2);
	assert_int_equal(again->lpVtbl->Release(again), 1);
	assert_status(object->lpVtbl->CancelOverlappedRequests(object), cancelled);
	assert_status(object->lpVtbl->GetOverlappedResult(object, &ov, FALSE), result);
}

/* ---- an object in C ---- */

struct object {
	IND2Overlapped base; /* first */
	ULONG references;
	bool gone;
};

static struct object *own(IND2Overlapped *base)
{
	return (struct object *)base;
}

static ULONG add_ref(IND2Overlapped *base)
{
	return ++own(base)->references;
}

static HRESULT query_interface(IND2Overlapped *base, REFIID iid, LPVOID *out)
{
	*out = NULL;
	if (memcmp(iid, &IID_IUnknown, sizeof(*iid)) != 0 &&
	    memcmp(iid, &IID_IND2Overlapped, sizeof(*iid)) != 0)
		return E_NOINTERFACE;
	*out = base;
	(void)add_ref(base);
	return S_OK;
}

static ULONG release(IND2Overlapped *base)
{
	own(base)->gone = --own(base)->references == 0;
	return own(base)->references;
}

static HRESULT cancel(IND2Overlapped *base)
{
	(void)base;
	return ND_DEVICE_REMOVED;
}

static HRESULT result_of(IND2Overlapped *base, OVERLAPPED *ov, BOOL wait)
{
	(void)base;
	(void)wait;
	return (HRESULT)ov->Internal;
}

static const IND2OverlappedVtbl table = {query_interface, add_ref, release, cancel, result_of};

/* ---- cases ---- */

static void an_object_of_cxx_is_used_in_c(void **state)
{
	int alive = 0;
	IND2Overlapped *object = both_new_object(&alive);

	(void)state;
	assert_int_equal(alive, 1);
	both_use_in_c(object, ND_UNSUCCESSFUL, ND_CANCELED);
	both_use_in_cxx(object, ND_UNSUCCESSFUL, ND_PENDING);
	assert_int_equal(CALL(object, Release), 0);
	assert_int_equal(alive, 0);
}

static void an_object_of_c_is_used_in_cxx(void **state)
{
	struct object object = {{&table}, 1, false};

	(void)state;
	both_use_in_cxx(&object.base, ND_DEVICE_REMOVED, ND_CANCELED);
	both_use_in_c(&object.base, ND_DEVICE_REMOVED, ND_SUCCESS);
	assert_false(object.gone);
	assert_int_equal(CALL(&object.base, Release), 0);
	assert_true(object.gone);
}

static void an_object_of_the_library_is_used_in_both(void **state)
{
	struct nd_pair p;

	(void)state;
	nd_make(&p);
	both_use_in_c((IND2Overlapped *)p.a.cq, ND_SUCCESS, ND_CANCELED);
	both_use_in_cxx((IND2Overlapped *)p.a.cq, ND_SUCCESS, ND_CANCELED);
	both_use_in_c((IND2Overlapped *)p.a.connector, ND_SUCCESS, ND_SUCCESS);
	both_use_in_cxx((IND2Overlapped *)p.a.mr, ND_SUCCESS, ND_SUCCESS);
	both_use_in_cxx((IND2Overlapped *)p.listener, ND_SUCCESS, ND_SUCCESS);
	nd_connect(&p);
	for (int i = 0; i < 2 * ND_DEPTH; i++) {
		both_pass_in_cxx(&p);
		nd_receive(&p.a, 1, 0, 8);
		nd_send(&p.b, 2, 0, 8, 0);
		nd_expect(&p.b, Nd2RequestTypeSend, 2, ND_SUCCESS);
		nd_expect(&p.a, Nd2RequestTypeReceive, 1, ND_SUCCESS);
	}
	nd_disconnect(&p);
	nd_drop(&p);
}

static HRESULT make_qp(struct nd_side *s, IUnknown *cq, IND2QueuePair **qp)
{
	return CALL(s->adapter, CreateQueuePair, &IID_IND2QueuePair, cq, UNKNOWN(s->cq), s, 1, 1, 1,
	            1, 0, OUT(*qp));
}

/* The library refuses what it has not made. */
static void foreign_objects_are_refused(void **state)
{
	struct object foreign = {{&table}, 1, false};
	int alive = 0;
	IND2Overlapped *object = both_new_object(&alive);
	IND2QueuePair *qp = NULL;
	struct nd_pair p;

	(void)state;
	nd_make(&p);
	assert_status(make_qp(&p.a, UNKNOWN(object), &qp), ND_INVALID_PARAMETER_2);
	assert_status(make_qp(&p.a, UNKNOWN(&foreign.base), &qp), ND_INVALID_PARAMETER_2);
	assert_null(qp);
	assert_status(CALL(p.listener, GetConnectionRequest, UNKNOWN(object), &p.b.ov),
	              ND_INVALID_PARAMETER_1);
	assert_status(CALL(p.a.connector, Connect, UNKNOWN(&foreign.base),
	                   (struct sockaddr *)&p.address, p.address_length, 0, 0, NULL, 0, &p.a.ov),
	              ND_INVALID_PARAMETER_1);
	assert_status(CALL(p.b.connector, Accept, UNKNOWN(object), 0, 0, NULL, 0, &p.b.ov),
	              ND_INVALID_PARAMETER_1);
	assert_int_equal(foreign.references, 1);
	assert_int_equal(CALL(object, Release), 0);
	assert_int_equal(alive, 0);
	nd_drop(&p);
}

/* A wrapper that passes QueryInterface on stands for the object within. */
static void a_wrapper_stands_for_its_object(void **state)
{
	int alive = 0;
	IND2CompletionQueue *wrapper;
	IND2QueuePair *qp = NULL;
	struct nd_side s;

	(void)state;
	nd_make_side(&s);
	wrapper = both_new_wrapper(s.cq, &alive);
	assert_status(make_qp(&s, UNKNOWN(wrapper), &qp), ND_SUCCESS);
	assert_status(CALL(wrapper, Notify, ND_CQ_NOTIFY_ANY, &s.ov), ND_PENDING);
	assert_status(CALL(qp, Receive, (void *)5, NULL, 0), ND_SUCCESS);
	assert_int_equal(CALL(qp, Release), 0);
	assert_status(CALL(wrapper, GetOverlappedResult, &s.ov, TRUE), ND_SUCCESS);
	nd_expect(&s, Nd2RequestTypeReceive, 5, ND_CANCELED);
	assert_int_equal(CALL(wrapper, Release), 0);
	assert_int_equal(alive, 0);
	nd_drop_side(&s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_object_of_cxx_is_used_in_c),
		cmocka_unit_test(an_object_of_c_is_used_in_cxx),
		cmocka_unit_test(an_object_of_the_library_is_used_in_both),
		cmocka_unit_test(foreign_objects_are_refused),
		cmocka_unit_test(a_wrapper_stands_for_its_object),
	};
	const int rc = nd_begin(argc, argv);

	return rc != 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}

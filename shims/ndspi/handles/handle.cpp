/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of handles. A handle is the number of a row and a count of how often the row was used,
 * so a handle that was closed names nothing, whatever the row has now. */
#include "handle.h"

#include <cstring>

namespace nd
{

namespace
{

constexpr unsigned row_bits = 24; /* rows; the count of uses is above */

struct Row {
	Object *object;
	std::uint32_t uses;
	std::uint32_t next_free;
};

struct {
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	Row *rows = nullptr;
	std::uint32_t count = 0;
	std::uint32_t first_free = 0; /* 0: none; row 0 is not used */
} table;

thread_local DWORD last_error;

HANDLE encode(std::uint32_t row)
{
	const std::uint64_t uses = table.rows[row].uses;

	return reinterpret_cast<HANDLE>((uses << row_bits | row) << 2);
}

bool grow()
{
	const std::uint32_t count = table.count == 0 ? 64 : 2 * table.count;
	Row *rows;

	if (count > 1u << row_bits)
		return false;
	rows = static_cast<Row *>(std::realloc(table.rows, count * sizeof(*rows)));
	if (rows == nullptr)
		return false;
	std::memset(rows + table.count, 0, (count - table.count) * sizeof(*rows));
	for (std::uint32_t row = table.count > 0 ? table.count : 1; row < count; row++) {
		rows[row].next_free = table.first_free;
		table.first_free = row;
	}
	table.rows = rows;
	table.count = count;
	return true;
}

/* Locked. The two lowest bits are the program's: Windows ignores them. */
Row *row_of(HANDLE handle)
{
	const std::uint64_t value = reinterpret_cast<std::uintptr_t>(handle) >> 2;
	const std::uint64_t row = value & ((1u << row_bits) - 1);

	if (row == 0 || row >= table.count || table.rows[row].object == nullptr ||
	    table.rows[row].uses != value >> row_bits)
		return nullptr;
	return &table.rows[row];
}

} // namespace

void hold(Object *object)
{
	(void)__atomic_add_fetch(&object->references, 1, __ATOMIC_RELAXED);
}

void release(Object *object)
{
	if (object != nullptr && __atomic_sub_fetch(&object->references, 1, __ATOMIC_ACQ_REL) == 0)
		object->destroy(object);
}

HANDLE handle_of(Object *object)
{
	HANDLE handle = nullptr;

	if (object == nullptr) {
		SetLastError(ERROR_NOT_ENOUGH_MEMORY);
		return nullptr;
	}
	pthread_mutex_lock(&table.lock);
	if (table.first_free != 0 || grow()) {
		const std::uint32_t row = table.first_free;

		table.first_free = table.rows[row].next_free;
		table.rows[row].object = object;
		handle = encode(row);
	}
	pthread_mutex_unlock(&table.lock);
	if (handle == nullptr) {
		release(object);
		SetLastError(ERROR_NOT_ENOUGH_MEMORY);
	}
	return handle;
}

Object *find_any(HANDLE handle)
{
	Object *object = nullptr;
	Row *row;

	pthread_mutex_lock(&table.lock);
	row = row_of(handle);
	if (row != nullptr) {
		object = row->object;
		hold(object);
	}
	pthread_mutex_unlock(&table.lock);
	if (object == nullptr)
		SetLastError(ERROR_INVALID_HANDLE);
	return object;
}

Object *find(HANDLE handle, Kind kind)
{
	Object *object = find_any(handle);

	if (object == nullptr || object->kind == kind)
		return object;
	release(object);
	SetLastError(ERROR_INVALID_HANDLE);
	return nullptr;
}

} // namespace nd

using namespace nd;

DWORD GetLastError(void)
{
	return last_error;
}

void SetLastError(DWORD error)
{
	last_error = error;
}

BOOL CloseHandle(HANDLE handle)
{
	Object *object = nullptr;
	Row *row;

	pthread_mutex_lock(&table.lock);
	row = row_of(handle);
	if (row != nullptr) {
		object = row->object;
		row->object = nullptr;
		/* a count that begins again would name old handles: the row is out of use */
		if (++row->uses != 0) {
			row->next_free = table.first_free;
			table.first_free = static_cast<std::uint32_t>(row - table.rows);
		}
	}
	pthread_mutex_unlock(&table.lock);
	if (object == nullptr) {
		SetLastError(ERROR_INVALID_HANDLE);
		return FALSE;
	}
	if (object->close != nullptr)
		object->close(object);
	release(object);
	return TRUE;
}

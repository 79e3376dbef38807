/* SPDX-License-Identifier: BSD-2-Clause */
/* A program of a user, in C and in C++, for install.sh: a thread that is waited for. */
#include <windows.h>

static DWORD WINAPI run(LPVOID argument)
{
	*(int *)argument = 17;
	return 3;
}

int main(void)
{
	int value = 0;
	DWORD code = 0;
	HANDLE thread = CreateThread(NULL, 0, run, &value, 0, NULL);

	if (thread == NULL || WaitForSingleObject(thread, 20000) != WAIT_OBJECT_0)
		return 1;
	if (!GetExitCodeThread(thread, &code) || !CloseHandle(thread))
		return 1;
	return code == 3 && value == 17 ? 0 : 1;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* One-sided transfers, by a completion port. The server lends memory to the client and sleeps; the
 * client reads all of the memory, writes all of it, and says so. Each side checks every byte.
 *
 *     nd-write-read -s ADDRESS[:PORT]
 *     nd-write-read -c ADDRESS:PORT [-l BYTES] [-n ROUNDS]
 */
#include "nd-side.h"

#include <algorithm>
#include <cstdio>

namespace
{

constexpr ULONG depth = 16;
constexpr ULONG block = 64 * 1024;

/* Private data of the client, and the answer. Both hosts have the same byte order; a token is four
 * bytes without a meaning. */
struct Wish {
	UINT32 size;
	UINT32 rounds;
};
struct Loan {
	UINT64 address;
	UINT32 token;
	UINT32 size;
};

/* Packets tell which operation has ended. A packet of another operation than the one that is waited
 * for is noted down in that operation. */
class PortWaiter final : public Waiter
{
      public:
	void attach(HANDLE file) override
	{
		*port_.out() = CreateIoCompletionPort(file, nullptr, 0, 0);
		if (port_.get() == nullptr)
			throw Failure{"CreateIoCompletionPort", ND_INSUFFICIENT_RESOURCES};
	}
	void prepare(Operation *operation) override
	{
		operation->has_packet = false;
	}
	bool wait(Operation *operation, DWORD milliseconds) override
	{
		while (!operation->has_packet) {
			OVERLAPPED *ended = nullptr;
			ULONG_PTR key;
			DWORD bytes;

			/* FALSE is also for the packet of an operation that has failed */
			if (!GetQueuedCompletionStatus(port_.get(), &bytes, &key, &ended,
			                               milliseconds) &&
			    ended == nullptr)
				return false;
			static_cast<Operation *>(ended)->has_packet = true;
		}
		operation->has_packet = false;
		return true;
	}

      private:
	Handle port_;
};

/* The byte at a place, in a round, as the server has prepared it or as the client writes it. */
unsigned char expected(ULONG place, ULONG round, bool from_client)
{
	return static_cast<unsigned char>(place * 7 + (place >> 8) * 13 + round * 2 + from_client);
}

void fill(Side *side, ULONG size, ULONG round, bool from_client)
{
	for (ULONG i = 0; i < size; i++)
		side->memory()[i] = expected(i, round, from_client);
}

ULONG count_wrong(Side *side, ULONG size, ULONG round, bool from_client)
{
	ULONG wrong = 0;

	for (ULONG i = 0; i < size; i++)
		wrong += side->memory()[i] != expected(i, round, from_client);
	return wrong;
}

void check_result(const ND2_RESULT &result)
{
	static const char *const names[] = {"a receive",       "a send", "a bind",
	                                    "an invalidation", "a read", "a write"};

	check(result.Status, names[result.RequestType]);
}

/* Wait for so many results, of which none may be a failure. */
void await(Side *side, ULONG count)
{
	while (count > 0) {
		ND2_RESULT results[depth];
		const ULONG taken = side->take_results(results, std::min(count, depth));

		for (ULONG i = 0; i < taken; i++)
			check_result(results[i]);
		count -= taken;
	}
}

/* A message without a byte is enough to tell that something has been done. */
void post_receive(Side *side)
{
	check(side->pair()->Receive(nullptr, nullptr, 0), "IND2QueuePair::Receive");
}

void send_word(Side *side)
{
	check(side->pair()->Send(nullptr, nullptr, 0, 0), "IND2QueuePair::Send");
}

void serve(Side *side)
{
	Wish wish;
	Loan loan;
	ULONG wrong = 0;

	side->listen("nd-write-read");
	side->get_request(&wish, sizeof(wish));
	if (wish.size == 0 || wish.size > side->info().MaxRegistrationSize || wish.size > 1u << 30)
		throw Failure{"the size that the client wants", ND_INVALID_BUFFER_SIZE};

	side->create(wish.size, ND_MR_FLAG_ALLOW_REMOTE_READ | ND_MR_FLAG_ALLOW_REMOTE_WRITE,
	             depth);
	loan.address = reinterpret_cast<UINT_PTR>(side->memory());
	loan.token = side->region()->GetRemoteToken();
	loan.size = wish.size;
	fill(side, wish.size, 0, false);
	post_receive(side);
	side->accept(&loan, sizeof(loan));
	std::printf("nd-write-read: connected\n");
	std::fflush(stdout);
	for (UINT32 round = 0; round < wish.rounds; round++) {
		/* The client's message is behind its writes, so they are in the memory now. */
		await(side, 1);
		wrong += count_wrong(side, wish.size, round, true);
		fill(side, wish.size, round + 1, false);
		post_receive(side);
		send_word(side);
		await(side, 1);
	}
	side->await_disconnect();
	side->disconnect();
	std::printf("%u rounds of %u bytes: the client has written %u wrong bytes\n", wish.rounds,
	            wish.size, static_cast<unsigned>(wrong));
	if (wrong > 0)
		throw Failure{"the content of the memory", ND_REMOTE_ERROR};
}

/* All of the memory, as many blocks at a time as the queue pair takes. */
void transfer(Side *side, const Loan &loan, bool is_write)
{
	const ULONG most = std::min(block, side->info().MaxTransferLength);
	ULONG in_flight = 0;
	ULONG length;

	for (ULONG offset = 0; offset < loan.size; offset += length) {
		length = std::min(most, loan.size - offset);
		const ND2_SGE sge = side->piece(offset, length);

		if (in_flight == depth) {
			await(side, 1);
			in_flight--;
		}
		if (is_write)
			check(side->pair()->Write(nullptr, &sge, 1, loan.address + offset,
			                          loan.token, 0),
			      "IND2QueuePair::Write");
		else
			check(side->pair()->Read(nullptr, &sge, 1, loan.address + offset,
			                         loan.token, 0),
			      "IND2QueuePair::Read");
		in_flight++;
	}
	await(side, in_flight);
}

void borrow(Side *side)
{
	const Wish wish = {side->options().size, side->options().rounds};
	ULONG wrong = 0;
	Loan loan;

	if (wish.size > 1u << 30)
		throw Failure{"-l: more than this program takes", ND_INVALID_BUFFER_SIZE};
	side->create(wish.size, ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_RDMA_READ_SINK, depth);
	side->connect(&wish, sizeof(wish), &loan, sizeof(loan));
	if (loan.size != wish.size)
		throw Failure{"the size that the server lends", ND_INVALID_BUFFER_SIZE};
	for (UINT32 round = 0; round < wish.rounds; round++) {
		transfer(side, loan, false);
		wrong += count_wrong(side, wish.size, round, false);
		fill(side, wish.size, round, true);
		transfer(side, loan, true);
		post_receive(side);
		send_word(side);
		await(side, 2);
	}
	side->disconnect();
	std::printf("%u rounds of %u bytes: %u wrong bytes were read\n", wish.rounds, wish.size,
	            static_cast<unsigned>(wrong));
	if (wrong > 0)
		throw Failure{"the content of the memory", ND_REMOTE_ERROR};
}

void write_read(const Options &options)
{
	PortWaiter waiter;
	Side side(options, &waiter);

	if (options.is_server)
		serve(&side);
	else
		borrow(&side);
}

} // namespace

int main(int argc, char **argv)
{
	Options defaults;

	defaults.size = 1024 * 1024;
	defaults.rounds = 10;
	return run(argc, argv, defaults, write_read);
}

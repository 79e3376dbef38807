/* SPDX-License-Identifier: BSD-2-Clause */
/* The latency of messages between two processes, by the events of NetworkDirect: each operation has
 * the one OVERLAPPED of the side, and its event, which resets itself, wakes the program.
 *
 *     nd-pingpong -s ADDRESS[:PORT]
 *     nd-pingpong -c ADDRESS:PORT [-l BYTES] [-n ROUNDS]
 */
#include "nd-side.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace
{

/* What the client tells the server. Both hosts have the same byte order. */
struct Plan {
	UINT32 size;
	UINT32 rounds;
};

class EventWaiter final : public Waiter
{
      public:
	EventWaiter()
	{
		*event_.out() = CreateEvent(nullptr, FALSE, FALSE, nullptr);
		if (event_.get() == nullptr)
			throw Failure{"CreateEvent", ND_INSUFFICIENT_RESOURCES};
	}
	void attach(HANDLE) override
	{
		/* an event belongs to an operation, not to the file */
	}
	void prepare(Operation *operation) override
	{
		operation->hEvent = event_.get();
	}
	bool wait(Operation *, DWORD milliseconds) override
	{
		return WaitForSingleObject(event_.get(), milliseconds) == WAIT_OBJECT_0;
	}

      private:
	Handle event_;
};

/* Two receive buffers and one to send from, of `size` bytes each. */
class PingPong
{
      public:
	PingPong(Side *side, ULONG size) : side_(side), size_(size)
	{
		side_->create(3 * size, ND_MR_FLAG_ALLOW_LOCAL_WRITE, depth);
	}
	/* The next message of the peer goes into one buffer, the one after it into the other. */
	void post_receive()
	{
		const ND2_SGE sge = side_->piece(next_ * size_, size_);

		check(side_->pair()->Receive(buffer(next_), &sge, 1), "IND2QueuePair::Receive");
		next_ = 1 - next_;
	}
	void send()
	{
		const ND2_SGE sge = side_->piece(2 * size_, size_);

		check(side_->pair()->Send(nullptr, &sge, 1, 0), "IND2QueuePair::Send");
		sends_++;
	}
	/* The message that comes next; before it, what was sent has left its buffer. */
	const unsigned char *await_message()
	{
		const unsigned char *message = nullptr;

		while (message == nullptr || sends_ > 0) {
			ND2_RESULT result;

			side_->take_results(&result, 1);
			if (result.RequestType == Nd2RequestTypeSend) {
				check(result.Status, "a send");
				sends_--;
				continue;
			}
			check(result.Status, "a receive");
			if (result.BytesTransferred != size_)
				throw Failure{"the length of a message", ND_DATA_OVERRUN};
			message = static_cast<unsigned char *>(result.RequestContext);
		}
		return message;
	}
	void await_sends()
	{
		ND2_RESULT result;

		for (; sends_ > 0; sends_--) {
			side_->take_results(&result, 1);
			check(result.Status, "a send");
		}
	}
	unsigned char *outgoing()
	{
		return buffer(2);
	}

      private:
	unsigned char *buffer(std::size_t number)
	{
		return side_->memory() + number * size_;
	}

	static constexpr ULONG depth = 4;
	Side *side_;
	ULONG size_;
	ULONG next_ = 0;
	ULONG sends_ = 0;
};

void serve(Side *side)
{
	Plan plan;

	side->listen("nd-pingpong");
	side->get_request(&plan, sizeof(plan));
	if (plan.size == 0 || plan.size > side->info().MaxTransferLength || plan.size > 1u << 30)
		throw Failure{"the size that the client wants", ND_INVALID_BUFFER_SIZE};

	PingPong game(side, plan.size);
	game.post_receive();
	side->accept(nullptr, 0);
	std::printf("nd-pingpong: connected\n");
	std::fflush(stdout);
	for (UINT32 round = 0; round < plan.rounds; round++) {
		std::memcpy(game.outgoing(), game.await_message(), plan.size);
		if (round + 1 < plan.rounds)
			game.post_receive();
		game.send();
	}
	game.await_sends();
	side->await_disconnect();
	side->disconnect();
	std::printf("%u messages of %u bytes returned\n", plan.rounds, plan.size);
}

double microseconds(const LARGE_INTEGER &begin, const LARGE_INTEGER &end)
{
	LARGE_INTEGER frequency;

	QueryPerformanceFrequency(&frequency);
	return static_cast<double>(end.QuadPart - begin.QuadPart) * 1e6 /
	       static_cast<double>(frequency.QuadPart);
}

void print_latency(std::vector<double> *times, ULONG size)
{
	double sum = 0;

	for (double time : *times)
		sum += time;
	std::sort(times->begin(), times->end());
	std::printf("%zu rounds of %u bytes: half a round trip takes %.2f us on average, "
	            "%.2f at least, %.2f in the middle, %.2f at most\n",
	            times->size(), static_cast<unsigned>(size),
	            sum / 2 / static_cast<double>(times->size()), times->front() / 2,
	            (*times)[times->size() / 2] / 2, times->back() / 2);
}

void play(Side *side)
{
	const Plan plan = {side->options().size, side->options().rounds};
	std::vector<double> times;

	if (plan.size > side->info().MaxTransferLength || plan.size > 1u << 30)
		throw Failure{"-l: more than the adapter sends", ND_INVALID_BUFFER_SIZE};
	times.reserve(plan.rounds);

	PingPong game(side, plan.size);
	game.post_receive();
	side->connect(&plan, sizeof(plan), nullptr, 0);
	for (UINT32 round = 0; round < plan.rounds; round++) {
		LARGE_INTEGER begin, end;

		/* another byte in each round, so that an old message is noticed */
		std::memset(game.outgoing(), static_cast<int>(round % 251), plan.size);
		QueryPerformanceCounter(&begin);
		game.send();
		const unsigned char *message = game.await_message();
		QueryPerformanceCounter(&end);
		times.push_back(microseconds(begin, end));
		if (std::memcmp(message, game.outgoing(), plan.size) != 0)
			throw Failure{"the content of a message", ND_REMOTE_ERROR};
		if (round + 1 < plan.rounds)
			game.post_receive();
	}
	side->disconnect();
	print_latency(&times, plan.size);
}

void pingpong(const Options &options)
{
	EventWaiter waiter;
	Side side(options, &waiter);

	if (options.is_server)
		serve(&side);
	else
		play(&side);
}

} // namespace

int main(int argc, char **argv)
{
	return run(argc, argv, Options(), pingpong);
}

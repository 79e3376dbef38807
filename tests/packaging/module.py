# SPDX-License-Identifier: BSD-2-Clause
"""The installed module moves frames over the loop provider and ofi:tcp."""

import threading

import ndx

for uri in ("loop", "ofi:tcp?iface=lo"):
    with ndx.Adapter(uri) as adapter:
        host = next(a[0] for a in adapter.addresses() if len(a) == 2)
        with ndx.Listener(adapter, (host, 0)) as listener, ndx.Receiver(adapter) as receiver:
            accepting = threading.Thread(target=receiver.accept, args=(listener,))
            accepting.start()
            with ndx.Sender(adapter) as sender:
                sender.connect(listener.address)
                accepting.join()
                for i in range(100):
                    sender.send(bytes([i]))
                    assert receiver.next(30).data[0] == i
print("module ndx: frames arrive")

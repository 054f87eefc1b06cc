"""A serial line between a client and a board that loses, changes and adds bytes."""

import contextlib
import os
import select
import threading
import tty


class Relay:
    """Passes bytes between a new pty (`port`) and the board's port.

    `to_board` and `to_client` are functions bytes -> bytes that may be exchanged at any time.
    """

    def __init__(self, board_port):
        self.to_board = self.to_client = lambda data: data
        self._line, self._client = os.openpty()
        tty.setraw(self._client)
        self.port = os.ttyname(self._client)
        self._board = os.open(board_port, os.O_RDWR | os.O_NOCTTY)
        self._stop, self._wake = os.pipe()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while True:
            ready, _, _ = select.select([self._line, self._board, self._stop], [], [])
            if self._stop in ready:
                return
            with contextlib.suppress(OSError):
                if self._line in ready:
                    self._write(self._board, self.to_board(os.read(self._line, 4096)))
                if self._board in ready:
                    self._write(self._line, self.to_client(os.read(self._board, 4096)))

    @staticmethod
    def _write(line, data):
        while data:
            data = data[os.write(line, data) :]

    def exchange(self, board_port):
        """Another board at the other end, or the same one after a restart."""
        os.dup2(os.open(board_port, os.O_RDWR | os.O_NOCTTY), self._board)

    def vanish(self):
        """The cable is pulled: the client's port goes away."""
        self.close()

    def close(self):
        if self._thread.is_alive():
            os.write(self._wake, b"x")
            self._thread.join()
            for line in (self._line, self._client, self._board, self._stop, self._wake):
                os.close(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

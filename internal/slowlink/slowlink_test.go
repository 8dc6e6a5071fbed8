package slowlink_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-ldl/coppice/internal/slowlink"
	"github.com/coppice-ldl/coppice/internal/wait"
)

// TestWrite: a message that takes longer than its deadline arrives, if each chunk is taken in
// time. A peer that reads nothing is found.
func TestWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		c := &slowlink.Conn{Conn: near}
		const size = 256 << 10
		go func() {
			for read := 0; read < size; {
				if wait.For(t.Context(), 800*time.Millisecond) != nil {
					return
				}
				n, err := io.ReadFull(far, make([]byte, 64<<10))
				if read += n; err != nil {
					return
				}
			}
		}()
		if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Write(make([]byte, size)); n != size || err != nil {
			t.Errorf("%d bytes, error %v", n, err)
		}
		if err := c.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Write([]byte("x")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d bytes, error %v", n, err)
		}
	})
}

package bus

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"
)

// TestBindWaits: an address that is in use for a moment is bound, and an address that stays in use is refused.
func TestBindWaits(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := taken.Addr().String()
	if _, err := bind(address); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("an address in use: error %v", err)
	}
	time.AfterFunc(bindTime/10, func() { taken.Close() })
	l, err := bind(address)
	if err != nil {
		t.Fatalf("an address that was in use for a moment: %v", err)
	}
	l.Close()
}

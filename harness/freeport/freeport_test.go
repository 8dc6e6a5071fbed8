package freeport

import (
	"net"
	"testing"
)

func TestBlocks(t *testing.T) {
	found, err := Blocks(3)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[int]bool)
	for _, base := range found {
		for port := base; port < base+BlockPorts; port++ {
			if seen[port] {
				t.Errorf("port %d is in two blocks", port)
			}
			seen[port] = true
			l, err := net.Listen("tcp", address(port))
			if err != nil {
				t.Errorf("a port that was found is not free: %v", err)
				continue
			}
			l.Close()
		}
	}
	if len(seen) != 3*BlockPorts {
		t.Errorf("%d ports", len(seen))
	}
}

// A block with a port that is taken is not used.
func TestHold(t *testing.T) {
	base, err := Block()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", address(base+2))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	held, err := hold(base)
	for _, l := range held {
		l.Close()
	}
	if err == nil || len(held) != 2 {
		t.Errorf("held %d ports, %v", len(held), err)
	}
}

// Another process cannot take a block that was found, though nothing listens on it yet.
func TestLease(t *testing.T) {
	base, err := Block()
	if err != nil {
		t.Fatal(err)
	}
	if l, err := net.ListenPacket("udp", address(base)); err == nil {
		l.Close()
		t.Errorf("port %d can be leased twice", base)
	}
}

// What was found is not found again, though nobody listens on it yet.
func TestAddress(t *testing.T) {
	seen := make(map[string]bool)
	for range 100 {
		a, err := Address()
		if err != nil {
			t.Fatal(err)
		}
		if seen[a] {
			t.Fatalf("%s was found twice", a)
		}
		seen[a] = true
	}
}

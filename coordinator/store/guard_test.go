package store

import (
	"bytes"
	"testing"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"
)

// requests encodes Raft's messages on one connection, as its transport does, with a
// snapshot that has bytes of any value.
func requests(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	hostile := bytes.Repeat([]byte{0xc9, 0xdf, 0xff, 0xff, 0xff}, 60)
	entries := []*raft.Log{{Index: 1, Term: 2, Data: bytes.Repeat([]byte{0xc9}, 70_000)},
		{Index: 2, Extensions: []byte("Size")}}
	header := raft.RPCHeader{ProtocolVersion: 3, ID: []byte("a"), Addr: []byte("h:1")}
	for _, r := range []struct {
		kind byte
		v    any
		then []byte
	}{
		{0, &raft.AppendEntriesRequest{RPCHeader: header, Term: 1 << 40, Entries: entries}, nil},
		{1, &raft.RequestVoteRequest{RPCHeader: header, Term: 7, LeadershipTransfer: true}, nil},
		{2, &raft.InstallSnapshotRequest{RPCHeader: header, Size: int64(len(hostile)), Configuration: []byte("Size")},
			hostile},
		{2, &raft.InstallSnapshotRequest{RPCHeader: header}, nil},
		{3, &raft.TimeoutNowRequest{RPCHeader: header}, nil},
		{4, &raft.RequestPreVoteRequest{RPCHeader: header, Term: 7}, nil},
		{2, &raft.InstallSnapshotRequest{Size: 1}, []byte{0xdd}},
		{0, &raft.AppendEntriesRequest{}, nil},
	} {
		b.WriteByte(r.kind)
		if err := codec.NewEncoder(&b, &codec.MsgpackHandle{}).Encode(r.v); err != nil {
			t.Fatal(err)
		}
		b.Write(r.then)
	}
	return b.Bytes()
}

// TestGuardFollowsRaft: Raft's messages pass, however they are cut, and afterwards the
// guard is between two requests.
func TestGuardFollowsRaft(t *testing.T) {
	all := requests(t)
	for _, piece := range []int{1, 2, 3, 7, 100, 4096, len(all)} {
		g := &guard{requests: true}
		for at := 0; at < len(all); at += piece {
			if err := g.follow(all[at:min(at+piece, len(all))]); err != nil {
				t.Fatalf("pieces of %d: at byte %d: %v", piece, at, err)
			}
		}
		if len(g.scan.open) != 0 || g.scan.skip != 0 || len(g.scan.head) != 0 {
			t.Errorf("pieces of %d: it waits for %d values, %d bytes", piece, len(g.scan.open), g.scan.skip)
		}
	}
	var b bytes.Buffer
	for _, v := range []any{"", &raft.AppendEntriesResponse{Term: 9, Success: true}, "an error",
		&raft.RequestVoteResponse{}} {
		if err := codec.NewEncoder(&b, &codec.MsgpackHandle{}).Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	if g := new(guard); g.follow(b.Bytes()) != nil || len(g.scan.open) != 0 {
		t.Error("answers do not pass")
	}
}

// TestGuardRefuses: lengths beyond their bounds are refused at once.
func TestGuardRefuses(t *testing.T) {
	for what, b := range map[string][]byte{
		"an extension": {0, 0x81, 0xa1, 'x', 0xc9, 0xdf, 1, 0x10, 0},
		"bytes":        {0, 0x81, 0xa1, 'x', 0xc6, 0x7f, 0xff, 0xff, 0xff},
		"a text":       {1, 0xdb, 0xff, 0xff, 0xff, 0xff},
		"a list":       {0, 0xdd, 0xff, 0xff, 0xff, 0xff},
		"a mapping":    {0, 0xdf, 0xff, 0xff, 0xff, 0xff},
		"depth":        append([]byte{0}, bytes.Repeat([]byte{0x91}, 100)...),
		"after a snapshot": append([]byte{2, 0x81, 0xa4, 'S', 'i', 'z', 'e', 3, 0xdd, 0xdd, 0xdd}, 0, 0xdd, 0xff, 0xff,
			0xff, 0xff),
	} {
		if g := (&guard{requests: true}); g.follow(b) == nil {
			t.Errorf("%s passes", what)
		}
	}
}

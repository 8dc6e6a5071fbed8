package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"

	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/harness/testkit"
)

// sealed writes the right checksum into a place of the VOTE file.
func sealed(b []byte) []byte {
	b = append(bytes.Clone(b), make([]byte, max(0, 2*stablePlace-len(b)))...)
	for at := 0; at+stablePlace <= len(b); at += stablePlace {
		place := b[at : at+stablePlace]
		end := stableHead + int(binary.LittleEndian.Uint16(place[32:])) + int(binary.LittleEndian.Uint16(place[34:]))
		if end <= len(place) {
			binary.LittleEndian.PutUint32(place, stableMagic)
			binary.LittleEndian.PutUint32(place[4:], crc32.Checksum(place[8:end], castagnoli))
		}
	}
	return b
}

// FuzzVote: a VOTE file is corrupt, or has the same content after it is closed and opened
// again.
func FuzzVote(f *testing.F) {
	dir := f.TempDir()
	first, err := openStable(dir, "a", true)
	if err != nil {
		f.Fatal(err)
	}
	if err := errors.Join(first.SetUint64([]byte(keyTerm), 7), first.Set([]byte(keyVoted), []byte("h:1")),
		first.close()); err != nil {
		f.Fatal(err)
	}
	b, err := os.ReadFile(first.path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:stablePlace])
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, 40))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, sealed(b)} {
			if err := os.WriteFile(first.path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			var s *stable
			var err error
			allocs.AtMost(t, 64<<10, "the vote", func() { s, err = openStable(dir, "a", false) })
			if err != nil {
				if !errors.Is(err, ErrCorrupt) {
					t.Fatalf("error %v", err)
				}
				continue
			}
			if err := s.close(); err != nil {
				t.Fatal(err)
			}
			again, err := openStable(dir, "a", false)
			if err != nil || again.record != s.record {
				t.Fatalf("%+v is read again as %+v, error %v", s.record, again, err)
			}
			if err := again.close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzMeta: a list of segments is corrupt, or has the same content after it is written
// again.
func FuzzMeta(f *testing.F) {
	m := &meta{filepath.Join(f.TempDir(), metaName), hclog.NewNullLogger()}
	f.Add([]byte(`{"NextSegmentID":2,"Segments":[{"ID":1,"BaseIndex":1,"SizeLimit":65536}]}`))
	f.Add([]byte(`{"Segments":[{},{},{}]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, text := range []string{string(b), checksum(string(b)) + " " + string(b)} {
			if err := errors.Join(os.WriteFile(m.path, []byte(text), 0o600), os.WriteFile(m.path+metaCopy, []byte(text),
				0o600)); err != nil {
				t.Fatal(err)
			}
			allocs.AtMost(t, 512*len(text)+64<<10, "the list of segments", func() {
				state, err := m.Load("")
				if err != nil {
					if !errors.Is(err, ErrCorrupt) {
						t.Fatalf("error %v", err)
					}
					return
				}
				if err := m.CommitState(state); err != nil {
					t.Fatal(err)
				}
				if again, err := m.Load(""); err != nil || len(again.Segments) != len(state.Segments) ||
					again.NextSegmentID != state.NextSegmentID {
					t.Fatalf("%+v is read again as %+v, error %v", state, again, err)
				}
			})
		}
	})
}

// FuzzFolder opens a folder with arbitrary small files: it is refused as corrupt or as
// another node's, or it is the folder of this node.
func FuzzFolder(f *testing.F) {
	quiet := slog.New(slog.DiscardHandler)
	dir := filepath.Join(f.TempDir(), "raft")
	made, err := Claim(Config{ID: "a", Dir: dir, Logger: quiet})
	if err != nil {
		f.Fatal(err)
	}
	if err := made.Close(); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(filepath.Join(dir, formatName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, []byte{})
	f.Add([]byte("coppice raft folder, format 5, node a\n"), []byte{1})
	f.Add([]byte("coppice raft folder, format 1, node b\n"), bytes.Repeat([]byte{0xff}, 12))
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, format, acked []byte) {
		if err := errors.Join(os.WriteFile(filepath.Join(dir, formatName), format, 0o600),
			os.WriteFile(filepath.Join(dir, formatCopy), format, 0o600), os.WriteFile(filepath.Join(dir, ackedName), acked,
				0o600)); err != nil {
			t.Fatal(err)
		}
		allocs.AtMost(t, 64*(len(format)+len(acked))+256<<10, "a folder", func() {
			folder, err := Claim(Config{ID: "a", Dir: dir, Logger: quiet})
			if err != nil {
				if !errors.Is(err, ErrFolder) && !errors.Is(err, ErrCorrupt) {
					t.Fatalf("error %v", err)
				}
				return
			}
			a, err := openAcked(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(a.close(), folder.Close()); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// fuzzSegment is the size of a log file in FuzzLog.
const fuzzSegment = 16 << 10

// FuzzLog changes the bytes of a log file: the log is corrupt, or every entry is as it was
// written. No memory is allocated for a claimed length.
func FuzzLog(f *testing.F) {
	dir := f.TempDir()
	quiet := slog.New(slog.DiscardHandler)
	folder, err := Claim(Config{ID: "a", Dir: dir, Logger: quiet})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { folder.Close() })
	config := &Config{SegmentBytes: fuzzSegment}
	open := func() (*diskLog, error) { return openDiskLog(folder, config, hclog.NewNullLogger(), func(error) {}) }
	l, err := open()
	if err != nil {
		f.Fatal(err)
	}
	for i := range 9 {
		if err := l.StoreLog(&raft.Log{Index: uint64(i + 1), Term: 1,
			Data: bytes.Repeat([]byte{byte(i)}, 100*i)}); err != nil {
			f.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		f.Fatal(err)
	}
	good := folderBytes(f, folder.log())
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 33, 0xff, 0xff, 0xff, 0x7f, 1, 0, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, changes []byte) {
		for name, b := range good {
			b = bytes.Clone(b)
			if filepath.Ext(name) == ".wal" {
				for c := changes; len(c) >= 6; c = c[6:] {
					copy(b[int(binary.BigEndian.Uint16(c))%len(b):], c[2:6])
				}
			}
			if err := os.WriteFile(filepath.Join(folder.log(), name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		allocs.AtMost(t, 4<<20, "a log", func() { checkLog(t, folder, open, len(changes) < 6) })
	})
}

// checkLog opens a log and reads all of it.
func checkLog(t *testing.T, folder *Folder, open func() (*diskLog, error), whole bool) {
	l, err := open()
	if err == nil {
		if err = l.check(folder, 0, nil); err == nil {
			for i := range 9 {
				var e raft.Log
				if err := l.GetLog(uint64(i+1), &e); err != nil || !bytes.Equal(e.Data, bytes.Repeat([]byte{byte(i)}, 100*i)) {
					t.Fatalf("entry %d has %d bytes, error %v", i+1, len(e.Data), err)
				}
			}
		}
		if closed := l.Close(); closed != nil {
			t.Fatal(closed)
		}
	}
	if err != nil && (whole || !errors.Is(err, ErrCorrupt) && !errors.Is(err, wal.ErrCorrupt)) {
		t.Fatalf("error %v", err)
	}
}

// folderBytes reads every file of a folder.
func folderBytes(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string][]byte)
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// FuzzRaftStream sends arbitrary bytes to the port of Raft. The library neither panics nor
// allocates memory for a claimed length.
func FuzzRaftStream(f *testing.F) {
	s, err := listen(&Config{RaftAddr: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)},
		Identity{ID: "a", Directory: "1", Cluster: "c"})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	n := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: s.session(), MaxPool: pooledConns, Timeout: time.Second, Logger: hclog.NewNullLogger(),
	})
	f.Cleanup(func() { n.Close() })
	done := make(chan struct{})
	f.Cleanup(func() { close(done) })
	go func() {
		for {
			select {
			case <-done:
				return
			case rpc := <-n.Consumer():
				rpc.Respond(nil, errors.New("no"))
			}
		}
	}()
	f.Add(
		[]byte(
			"\x02\x8a\xa1s\xdf\xdf\xd6\xdfu\xdd\xff\xff\x1f\ns\xdf\xdf\xf1\xdf\xdf\xdf\xdf\xdf\xdf\xab\xc9\xdf\x01\x10\x00\xff"))
	f.Add(requests(f))
	f.Add(encodeGreeting(party{"other", "b.2"}, "a.1"))
	f.Add([]byte(greetingMagic + "\xff\xff\xff"))
	for kind := range byte(6) {
		f.Add([]byte{kind, 0x8a, 0xa1, 'x', 0xdd, 0xff, 0xff, 0xff, 0xff})
		f.Add([]byte{kind, 0x81, 0xa7, 'E', 'n', 't', 'r', 'i', 'e', 's', 0xdd, 0x7f, 0xff, 0xff, 0xff, 0x80})
		f.Add([]byte{kind, 0x81, 0xa6, 'L', 'e', 'a', 'd', 'e', 'r', 0xc6, 0x7f, 0xff, 0xff, 0xff, 1})
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		allocs.AtMost(t, 1<<10*len(b)+8<<20, "a stream", func() {
			c, err := net.Dial("tcp", s.listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.SetDeadline(time.Now().Add(testkit.Limit)); err != nil {
				t.Fatal(err)
			}
			if !bytes.HasPrefix(b, []byte(greetingMagic)) { // else the greeting itself is drawn
				b = append(encodeGreeting(party{"c", "b.2"}, "a.1"), b...)
			}
			if _, err := c.Write(b); err != nil {
				return // refused already
			}
			c.(*net.TCPConn).CloseWrite()
			if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal("the connection hangs")
			}
		})
	})
}

package cli

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// unixPair returns two connected sockets.
func unixPair(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	var pair [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		pair[i] = c.(*net.UnixConn)
	}
	return pair[0], pair[1]
}

// frameOf returns the bytes of a frame.
func frameOf(t *testing.T, v any, descriptors int) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	return append(binary.LittleEndian.AppendUint32(b, uint32(descriptors)), text...)
}

// libraryClient speaks to a library as Python does.
type libraryClient struct {
	t    *testing.T
	conn *net.UnixConn
	done chan error // of library.serve
}

func startLibrary(t *testing.T) *libraryClient {
	t.Helper()
	ours, theirs := unixPair(t)
	c := &libraryClient{t, ours, make(chan error, 1)}
	l := &library{start: cmdtest.RunWith, in: frames{from: theirs}, to: theirs,
		running: make(map[uint64]context.CancelCauseFunc)}
	go func() { c.done <- l.serve(context.Background()) }()
	if err := ours.SetDeadline(time.Now().Add(testkit.Limit)); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *libraryClient) send(call libraryCall, files ...*os.File) {
	c.t.Helper()
	var rights []byte
	if len(files) > 0 {
		var fds []int
		for _, f := range files {
			fds = append(fds, int(f.Fd()))
		}
		rights = unix.UnixRights(fds...)
	}
	if _, _, err := c.conn.WriteMsgUnix(frameOf(c.t, call, len(files)), rights, nil); err != nil {
		c.t.Fatal(err)
	}
}

// receive returns the next frame.
func (c *libraryClient) receive() (a libraryAnswer) {
	c.t.Helper()
	header := make([]byte, frameHeader)
	if _, err := io.ReadFull(c.conn, header); err != nil {
		c.t.Fatal(err)
	}
	text := make([]byte, binary.LittleEndian.Uint32(header))
	if _, err := io.ReadFull(c.conn, text); err != nil {
		c.t.Fatal(err)
	}
	if err := json.Unmarshal(text, &a); err != nil {
		c.t.Fatal(err)
	}
	return a
}

// result collects the frames of a command until it ends.
func (c *libraryClient) result(id uint64) (out, notes string, code int) {
	c.t.Helper()
	for {
		a := c.receive()
		if a.ID != id {
			c.t.Fatalf("a frame of command %d, want %d", a.ID, id)
		}
		out, notes = out+a.Out, notes+a.Err
		if a.Code != nil {
			return out, notes, *a.Code
		}
	}
}

// TestLibrary: a command has the output, the exit code and the errors of the command line, and descriptors in its
// arguments.
func TestLibrary(t *testing.T) {
	c := startLibrary(t)
	c.send(libraryCall{ID: 1, Args: []string{"algorithm", "show", "structrf", "-o", "json"}})
	if out, notes, code := c.result(1); code != 0 || notes != "" || !json.Valid([]byte(out)) {
		t.Errorf("exit code %d, %q, %q", code, out, notes)
	}
	c.send(libraryCall{ID: 2, Args: []string{"train", "--local"}})
	if out, notes, code := c.result(2); code != ExitUsage || out != "" ||
		!strings.Contains(notes, "want data to train on") {
		t.Errorf("exit code %d, %q, %q", code, out, notes)
	}
	path := filepath.Join(t.TempDir(), "damaged.model")
	if err := os.WriteFile(path, []byte("no model"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c.send(libraryCall{ID: 3, Args: []string{"model", "show", "/dev/fd/@0"}, Names: []string{"the model"}}, f)
	if _, notes, code := c.result(3); code != ExitFailed || !strings.Contains(notes, `{"error":"the model: `) {
		t.Errorf("a descriptor: exit code %d, %q", code, notes)
	}
	c.send(libraryCall{ID: 4, Args: []string{"model", "show", "/dev/fd/@7"}})
	if _, notes, code := c.result(4); code != ExitFailed || !strings.Contains(notes, "/dev/fd/@7") {
		t.Errorf("a descriptor that was not sent: exit code %d, %q", code, notes)
	}
}

// TestLibraryCancel: a command ends if it is cancelled, and all commands end if the socket closes.
func TestLibraryCancel(t *testing.T) {
	c := startLibrary(t)
	data := filepath.Join(t.TempDir(), "d.csv")
	if made := cmdtest.Run(t, "dataset", "generate", "--kind", "random", "--rows", "4000", "--features", "50", "--out",
		data); made.Code != 0 {
		t.Fatal(made.Stderr)
	}
	long := []string{"train", "--local", "--algorithm", "structrf", "--set", "trees=10000", "--set", "max_depth=60",
		"--data", data}
	c.send(libraryCall{ID: 1, Args: long})
	c.send(libraryCall{ID: 2, Args: []string{"version"}})
	if out, _, code := c.result(2); code != 0 || out == "" {
		t.Errorf("a command does not run at the same time as another: exit code %d, %q", code, out)
	}
	c.send(libraryCall{ID: 1, Cancel: true})
	if _, _, code := c.result(1); code != ExitSignal+int(unix.SIGINT) {
		t.Errorf("a cancelled command has the exit code %d", code)
	}
	c.send(libraryCall{ID: 3, Args: long})
	c.conn.Close()
	select {
	case err := <-c.done:
		if !errors.Is(err, io.EOF) {
			t.Errorf("the end of the stream: %v", err)
		}
	case <-time.After(testkit.Limit):
		t.Fatal("the commands go on after the socket has closed")
	}
}

// TestLibraryFolders: temporary folders are removed if the socket closes, unless the library removes them.
func TestLibraryFolders(t *testing.T) {
	for _, keep := range []bool{false, true} {
		c := startLibrary(t)
		c.send(libraryCall{ID: 1, Folder: filepath.Join(t.TempDir(), "some-")})
		folder, _, code := c.result(1)
		inside := filepath.Join(folder, "a", "b")
		if err := os.MkdirAll(inside, 0o700); err != nil || code != 0 || !strings.HasPrefix(filepath.Base(folder), "some-") {
			t.Fatal(folder, code, err)
		}
		if keep {
			c.send(libraryCall{Keep: true})
		}
		c.conn.Close()
		if err := <-c.done; !errors.Is(err, io.EOF) {
			t.Errorf("the end of the stream: %v", err)
		}
		if _, err := os.Stat(inside); (err == nil) != keep {
			t.Errorf("keep %v: %v", keep, err)
		}
	}
}

// TestFrames: frames arrive whole, however the stream is cut, with their descriptors in order.
func TestFrames(t *testing.T) {
	ours, theirs := unixPair(t)
	var sent []byte
	var files []*os.File
	for i := range 3 {
		sent = append(sent, frameOf(t, libraryCall{ID: uint64(i)}, i)...)
		for range i {
			f, err := os.CreateTemp(t.TempDir(), "")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			files = append(files, f)
		}
	}
	var sender sync.WaitGroup
	defer sender.Wait()
	sender.Go(func() {
		for i, b := range sent {
			var rights []byte
			if i < len(files) { // they arrive before the bytes of their frames
				rights = unix.UnixRights(int(files[i].Fd()))
			}
			if _, _, err := ours.WriteMsgUnix([]byte{b}, rights, nil); err != nil {
				t.Error(err)
			}
		}
		ours.Close()
	})
	in := frames{from: theirs}
	at := 0
	for i := range 3 {
		text, got, err := in.next()
		if err != nil {
			t.Fatal(err)
		}
		var c libraryCall
		if err := json.Unmarshal(text, &c); err != nil || c.ID != uint64(i) || len(got) != i {
			t.Errorf("frame %d: %s with %d descriptors, error %v", i, text, len(got), err)
		}
		for _, f := range got {
			want, _ := files[at].Stat()
			have, err := f.Stat()
			if err != nil || !os.SameFile(want, have) {
				t.Errorf("descriptor %d of frame %d is another file: %v", at, i, err)
			}
			at++
			f.Close()
		}
	}
	if _, _, err := in.next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

// TestDamagedFrames: frames that are not valid end the library, and take no memory.
func TestDamagedFrames(t *testing.T) {
	for name, b := range map[string][]byte{
		"too long":         binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 1<<31), 0),
		"many descriptors": binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 2), 1000),
		"lost descriptors": frameOf(t, libraryCall{}, 2),
		"half a frame":     frameOf(t, libraryCall{}, 0)[:10],
		"half a header":    {1, 0, 0},
	} {
		ours, theirs := unixPair(t)
		if _, err := ours.Write(b); err != nil {
			t.Fatal(err)
		}
		ours.Close()
		in := frames{from: theirs}
		if _, _, err := in.next(); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

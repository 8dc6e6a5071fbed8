package experiment

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coppice-ldl/coppice/protocol"
)

// TestEndsFollow: what is new is read after each record, also behind a piece that a crash has left, in a new file,
// and in a file that is shorter than before.
func TestEndsFollow(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "e")
	var e Ends
	want := func(what string, runs, failed, damaged int) {
		t.Helper()
		err := e.Update(t.Context(), dir)
		n := 0
		for _, end := range e.ByKey {
			if end.Error != "" {
				n++
			}
		}
		if err != nil || len(e.ByKey) != runs || n != failed || len(e.Damaged) != damaged {
			t.Errorf("%s: %d runs, %d failed, damaged %v, error %v", what, len(e.ByKey), n, e.Damaged, err)
		}
	}
	want("no folder", 0, 0, 0)
	put(t, dir, recordOf(1, "why"), recordOf(2, ""))
	want("two", 2, 1, 0)
	put(t, dir, recordOf(1, ""))
	want("run again", 2, 0, 0)
	if end := e.ByKey[recordOf(2, "").Key]; end.Seconds != 2 {
		t.Errorf("%+v", end)
	}
	path := filepath.Join(dir, runsFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	three, _ := encodeRecord(recordOf(3, ""))
	add := func(b []byte) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.Write(b)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	add(three[:20])
	want("half a line", 2, 0, 0)
	put(t, dir, recordOf(4, "why")) // cuts the half line off
	want("over half a line", 3, 1, 0)
	add([]byte("00000000 {}\n"))
	want("a wrong line at the end", 3, 1, 0)
	add(three)
	want("a wrong line between records", 4, 1, 1)
	if err := os.Truncate(path, int64(len(whole))); err != nil {
		t.Fatal(err)
	}
	want("shorter", 2, 0, 0)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	want("deleted", 0, 0, 0)
	put(t, dir, recordOf(5, ""))
	want("another file", 1, 0, 0)
}

// TestFillFolder: FillFolder gives the table that Layout.Fill makes of all records.
func TestFillFolder(t *testing.T) {
	s, p := planned(t, "name: a\ndatasets: [b]\nmethods: [aa-knn, sa-bfgs]\nfolds: 3")
	l, err := NewOutline(s, []*Plan{p}, []string{"x"}).Layout()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "e")
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, why := range []string{"why", "", "why", "", "why"} { // each record counts, also a worse one
		r := recordOf(1, why)
		r.Key = l.Keys[i%3]
		err = errors.Join(err, f.Put(r))
	}
	if err = errors.Join(err, f.PutLayout(l), f.Close()); err != nil {
		t.Fatal(err)
	}
	c, err := ReadFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	filled, damaged, err := FillFolder(t.Context(), dir)
	if err != nil || len(damaged) > 0 {
		t.Fatal(damaged, err)
	}
	want := c.Layout.Fill(c.Records)
	if got := fmt.Sprintf("%+v", filled.Table.Runs); got != fmt.Sprintf("%+v", want.Runs) || Count(want).Failed != 2 {
		t.Errorf("%s\nwant %+v", got, want.Runs)
	}
}

// TestHostileFolder: a folder of others may have a symbolic link or a pipe in place of a file. Nothing outside of the
// folder is read or written then, and nothing waits.
func TestHostileFolder(t *testing.T) {
	s, p := planned(t, "name: a\ndatasets: [b]\nmethods: [aa-knn, sa-bfgs]\nfolds: 3")
	l, err := NewOutline(s, []*Plan{p}, []string{"x"}).Layout()
	if err != nil {
		t.Fatal(err)
	}
	folder := func(name string) string {
		dir := filepath.Join(t.TempDir(), name)
		f, err := OpenFolder(dir)
		if err == nil {
			err = errors.Join(f.PutLayout(l), f.Put(recordOf(1, "")), f.Close())
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, lockFile), []byte(`{"running":{"secret":1}}`), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	outside := folder("outside")
	for _, file := range []string{layoutFile, runsFile, lockFile} {
		for what, put := range map[string]func(at string) error{
			"link": func(at string) error { return os.Symlink(filepath.Join(outside, file), at) },
			"some link": func(at string) error {
				to, err := filepath.Rel(filepath.Dir(at), filepath.Join(outside, file))
				return cmp.Or(err, os.Symlink(to, at))
			},
			"folder": func(at string) error { return os.Mkdir(at, 0o700) },
			"pipe":   func(at string) error { return unix.Mkfifo(at, 0o600) },
		} {
			dir := folder("e")
			at := filepath.Join(dir, file)
			if err := cmp.Or(os.Remove(at), put(at)); err != nil {
				t.Fatal(err)
			}
			refused := func(how string, err error) {
				t.Helper()
				if err == nil || !strings.Contains(err.Error(), at+": ") || !strings.Contains(err.Error(), "regular file") {
					t.Errorf("%s: %s in place of %s: error %v", how, what, file, err)
				}
			}
			if file == lockFile {
				if running, works := Working(dir, time.Now()); works {
					t.Errorf("%s in place of the lock: %v", what, running)
				}
			} else {
				_, err := ReadFolder(dir)
				refused("ReadFolder", err)
				_, _, err = FillFolder(t.Context(), dir)
				refused("FillFolder", err)
			}
			if file == runsFile {
				refused("Update", new(Ends).Update(t.Context(), dir))
			}
			_, err := OpenFolder(dir)
			refused("OpenFolder", err)
		}
	}
	if c, err := ReadFolder(outside); err != nil || len(c.Records) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestWorking: a folder says which runs its process computes, until the process closes it or has ended.
func TestWorking(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "e")
	if _, works := Working(dir, time.Now()); works {
		t.Error("a folder that does not exist")
	}
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	one, two := recordOf(1, ""), recordOf(2, "")
	for _, r := range []*Record{one, two} {
		f.Begin(r.Key)
	}
	has := func(keys int) {
		t.Helper()
		for {
			running, works := Working(dir, time.Now())
			if works && len(running) == keys {
				return
			}
			select {
			case <-t.Context().Done():
				t.Fatal(running, works)
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	has(2)
	if err := f.Put(one); err != nil {
		t.Fatal(err)
	}
	has(1)
	f.Drop(two.Key)
	has(0)
	if _, works := Working(dir, time.Now().Add(worksKept+2*worksEvery)); works {
		t.Error("a process that has ended")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, works := Working(dir, time.Now()); works {
		t.Error("a folder that was closed")
	}
}

// FuzzEnds: a line that is a record ends as the record does, and no other line does.
func FuzzEnds(f *testing.F) {
	for _, r := range []*Record{recordOf(1, "why"), recordOf(2, ""), recordOf(0, "")} {
		line, _ := encodeRecord(r)
		f.Add(bytes.TrimSuffix(line[sumLength:], []byte("\n")))
	}
	f.Add([]byte(`{"key":"` + strings.Repeat("1", 64) + `","seconds":-1,"result":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, line := range [][]byte{b, summed(b)} {
			key, end, ok := decodeEnd(line)
			r, err := decodeRecord(line)
			if err == nil && (!ok || r.Key != key || end != (End{r.Seconds, protocol.Brief(r.Outcome.Error)})) {
				t.Fatalf("%q: %s, %+v, %v, want %+v", line, key, end, ok, r)
			}
			if ok && (len(key) != 64 || !(end.Seconds >= 0)) {
				t.Fatalf("%q: %s, %+v", line, key, end)
			}
		}
	})
}

// summed returns a line with its sum.
func summed(b []byte) []byte {
	return fmt.Appendf(nil, "%08x %s", crc32.Checksum(b, castagnoli), b)
}

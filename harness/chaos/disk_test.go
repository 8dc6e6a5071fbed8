package chaos

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func aStrike(seed uint64) *strike { return &strike{rng: rand.New(rand.NewPCG(seed, 0))} }

// A byte of one blob is inverted, and nothing else in the folder is touched.
func TestFlipBlob(t *testing.T) {
	dir := t.TempDir()
	first, second := strings.Repeat("a", 64), strings.Repeat("b", 64)
	files := map[string]string{first: "hello", second: "world", "FORMAT": "1", first + ".corrupt": "x",
		strings.Repeat("z", 64): "no digest"}
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	hit := make(map[string]bool)
	for seed := range uint64(20) {
		digest, err := aStrike(seed).flipBlob(dir)
		if err != nil {
			t.Fatal(err)
		}
		hit[digest] = true
		for name, text := range files {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := differences(b, []byte(text)), map[bool]int{true: 1}[name == digest]; got != want {
				t.Errorf("%s differs in %d bytes, want %d", name, got, want)
			}
			write(t, filepath.Join(dir, name), text)
		}
	}
	if !hit[first] || !hit[second] || len(hit) != 2 {
		t.Errorf("hit %v", hit)
	}
	if _, err := aStrike(1).flipBlob(t.TempDir()); err == nil {
		t.Error("a folder without blobs passed")
	}
}

func differences(a, b []byte) (n int) {
	if len(a) != len(b) {
		return -1
	}
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// The damage is near the end of what was written, not in the room after it, and in
// the last file that has anything.
func TestDamageLog(t *testing.T) {
	const used, room = 3 * tailBytes, 2 * tailBytes
	ways := make(map[string]bool)
	for seed := range uint64(20) {
		dir := t.TempDir()
		old, last, next := filepath.Join(dir, "1.wal"), filepath.Join(dir, "2.wal"), filepath.Join(dir, "3.wal")
		body := append(bytes.Repeat([]byte{7}, used), make([]byte, room)...)
		write(t, old, string(body))
		write(t, last, string(body))
		write(t, next, string(make([]byte, room)))
		if err := aStrike(seed).damageLog(dir); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(last)
		if err != nil {
			t.Fatal(err)
		}
		switch at := bytes.IndexByte(b, ^byte(7)); {
		case len(b) < used && len(b) >= used-tailBytes:
			ways["cut"] = true
		case len(b) == len(body) && at >= used-tailBytes && at < used && differences(b, body) == 1:
			ways["flipped"] = true
		default:
			t.Errorf("%d bytes are left, the first other one is %d", len(b), at)
		}
		for path, want := range map[string]int{old: used + room, next: room} {
			if info, err := os.Stat(path); err != nil || info.Size() != int64(want) {
				t.Errorf("%s has changed, %v", path, err)
			}
		}
	}
	if len(ways) != 2 {
		t.Errorf("the ways were %v", ways)
	}
}

// The newest snapshot is damaged, whatever its name, and none that is not complete.
func TestDamageSnapshot(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-time.Hour)
	for i, name := range []string{"9-900-1", "10-1000-2", "10-1001-3.tmp"} {
		path := filepath.Join(dir, name, "state.bin")
		if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, path, "snapshot")
		at := old.Add(time.Duration(i) * time.Second)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	path, err := lastSnapshot(dir)
	if err != nil || filepath.Base(filepath.Dir(path)) != "10-1000-2" {
		t.Fatalf("%s, %v", path, err)
	}
	if err := aStrike(1).damageSnapshot(path); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || differences(b, []byte("snapshot")) != 1 {
		t.Errorf("%q, %v", b, err)
	}
	if path, err := lastSnapshot(t.TempDir()); err != nil || path != "" {
		t.Errorf("a folder without snapshots has %q, %v", path, err)
	}
}

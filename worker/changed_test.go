package worker

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/protocol"
)

// A file that changes after it was found right, while nobody has it open, and shows
// it, is read again when the next job opens it, found wrong and fetched: no job
// fails for it.
func TestShardChanged(t *testing.T) {
	for name, change := range map[string]func(file []byte, rows []uint32) []byte{
		"cut short":               func(b []byte, _ []uint32) []byte { return b[:len(b)/2] },
		"rows beyond the dataset": beyond,
		"another value":           func(b []byte, _ []uint32) []byte { b[len(b)-9] ^= 1; return b },
	} {
		t.Run(name, func(t *testing.T) {
			d := importData(t, dense())
			c := newCluster(t)
			c.add(d)
			l := c.lead("a", 5)
			w := c.start(Config{Slots: 1})
			j := newTestJob(t, d, 7, param.Values{"scaling": "standard"})
			list, sums := rounds(t, d, j, 1)
			l.setup(w, 40, j, d.manifest)
			l.to(w, l.message(40, 0, list[0], allUnits(list[0].Units)))
			receive(t, "a part", l.parts)
			l.to(w, &protocol.Forget{Epoch: 5, Job: 40})
			ref := d.manifest.Shards[0]
			eventually(t, "a closed file", func() bool {
				w.cache.mu.Lock()
				defer w.cache.mu.Unlock()
				return w.cache.entries[ref.Digest].open == nil
			})
			path := must[string](t)(w.cache.folder.Path(ref.Digest))
			b := must[[]byte](t)(os.ReadFile(path))
			if err := os.WriteFile(path, change(b, d.local.Shards[0].Row), 0o644); err != nil {
				t.Fatal(err)
			}
			l.setup(w, 41, j, d.manifest)
			l.to(w, l.message(41, 0, list[0], allUnits(list[0].Units)))
			select {
			case p := <-l.parts:
				if err := samePartial(p.Partial, sums[0]); err != nil {
					t.Error(err)
				}
			case f := <-l.fails:
				t.Errorf("failed: %+v", f)
			case <-time.After(timeout):
				t.Fatal("no answer")
			}
			if n := counter(w.metrics.BlobsCorrupt); n != 1 {
				t.Errorf("%v corrupt files", n)
			}
		})
	}
}

// beyond makes the first row number of an encoded shard a great one.
func beyond(b []byte, rows []uint32) []byte {
	var first []byte
	for _, row := range rows[:4] {
		first = binary.LittleEndian.AppendUint32(first, row)
	}
	b[bytes.Index(b, first)+3] = 0x7f
	return b
}

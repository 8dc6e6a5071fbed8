package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/coppice-ldl/coppice/harness/allocs"
)

// FuzzDecodeFolds: a split is of the right length or refused.
func FuzzDecodeFolds(f *testing.F) {
	f.Add(EncodeFolds([]uint16{1, 0, 65535}), 3)
	f.Add([]byte{1}, 0)
	f.Add([]byte{}, 1<<62)
	f.Add([]byte{}, -1<<63)
	f.Fuzz(func(t *testing.T, b []byte, rows int) {
		var folds []uint16
		var err error
		allocs.AtMost(t, 4*len(b)+8<<10, "a split", func() { folds, err = DecodeFolds(b, rows) })
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if len(folds) != rows || !bytes.Equal(EncodeFolds(folds), b) {
			t.Fatalf("%d folds of %d rows", len(folds), rows)
		}
	})
}

// TestShardClaims: a shard's header costs nothing, whatever it claims.
func TestShardClaims(t *testing.T) {
	for _, rows := range []*Rows{denseRows(), sparseRows()} {
		good := EncodeShard(rows, nil)
		for at := 8; at < shardHeader; at++ {
			bad := bytes.Clone(good)
			for i := at; i < min(at+4, shardHeader); i++ {
				bad[i] = 0xff
			}
			checkDecoded(t, bad)
		}
	}
}

// FuzzSplit: a split comes as JSON within a job; each row gets one role, or the
// split is refused, at once.
func FuzzSplit(f *testing.F) {
	f.Add([]byte(`{"seed":7,"folds":10,"fold":3}`), uint16(25))
	f.Add([]byte(`{"test_fraction":0.2,"validation_fraction":0.1,"validation_min":20}`), uint16(25))
	f.Add([]byte(`{"test_fraction":1e300}`), uint16(3))
	f.Add([]byte(`{"test_fraction":0.6}`), uint16(0))
	f.Add([]byte(`{"folds":3,"fold":-1}`), uint16(3))
	f.Add([]byte(`{"folds":3,"fold":9223372036854775807}`), uint16(3))
	f.Add([]byte(`{"folds":9223372036854775807,"fold":9}`), uint16(3))
	f.Add([]byte(`{"validation_fraction":1,"validation_min":-9}`), uint16(0))
	f.Add([]byte(`{"folds":4,"inner":3,"inner_fold":2,"validation_fraction":0.2}`), uint16(25))
	f.Add([]byte(`{"inner":65536,"inner_fold":9,"inner_whole":true,"overlap":true}`), uint16(3))
	f.Fuzz(func(t *testing.T, b []byte, rows uint16) {
		var s Split
		if json.Unmarshal(b, &s) != nil || s.Assigned != "" {
			return
		}
		roles, err := s.Assign(int(rows), nil)
		if err != nil {
			return
		}
		if len(roles) != int(rows) {
			t.Fatalf("%d roles of %d rows", len(roles), rows)
		}
		for i, r := range roles {
			if r != Train && r != Validation && r != Test && (r != Outside || s.Inner == 0) {
				t.Fatalf("row %d has the roles %b", i, r)
			}
		}
	})
}

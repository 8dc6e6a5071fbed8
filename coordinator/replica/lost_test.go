package replica

import (
	"errors"
	"testing"

	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/bus"
)

// A blob is lost where all say that they lack it; a coordinator that is away may
// have it. Either is said at once.
func TestALostBlobIsToldFromAnAbsentHolder(t *testing.T) {
	members := cluster(t, 3)
	digest := blobs.Sum([]byte("nowhere"))
	if _, err := members[0].Get(within(t), digest); !errors.Is(err, blobs.ErrMissing) || errors.Is(err, bus.ErrNoBlob) {
		t.Errorf("a blob that nobody has: %v", err)
	}
	members[2].stop()
	soon(t, "the answer", func() {
		if _, err := members[0].Get(within(t), digest); !errors.Is(err, bus.ErrNoBlob) || errors.Is(err, blobs.ErrMissing) {
			t.Errorf("a blob that one who is away may have: %v", err)
		}
	})
}

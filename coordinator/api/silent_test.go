package api

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/bus"
	"github.com/coppice-ldl/coppice/protocol"
)

// mute is a network on which nobody answers.
type mute struct{ bus.Link }

func (mute) Request(context.Context, string, []byte) ([]byte, error) { return nil, bus.ErrNoAnswer }
func (mute) MaxPayload() int                                         { return 1 << 20 }
func (mute) Connected() bool                                         { return true }

// A blob that another coordinator may have, which does not answer just now, was not
// withheld by the client: it is to try again, not to give up.
func TestSilentHolder(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	s.cfg.Blobs.Peers, s.cfg.Blobs.Conn = []string{"b"}, bus.New(mute{}, bus.Options{Log: slog.New(slog.DiscardHandler)})
	m, _ := imported(t, 300)
	s.refuse(503, "POST", "/v1/datasets", protocol.DatasetPutEntry{Name: "other", Manifest: m}, "shard 0", m.Shards[0].Digest)
	r := submission("art", "", nil)
	r.Spec.Folds, r.Spec.Assigned = 3, blobs.Sum(nil)
	s.refuse(503, "POST", "/v1/jobs", r, "split")
	if err := notSent("the split", "x", errors.Join(blobs.ErrDigest)); !errors.Is(err, errBad) {
		t.Errorf("what is no digest: %v", err)
	}
}

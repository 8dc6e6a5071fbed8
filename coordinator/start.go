package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/protocol"
)

// openStart finds out how this coordinator begins: with what its folder has, with a
// new cluster, or with what the others have. That may take until others are there;
// HTTP answers meanwhile.
func (n *node) openStart(ctx context.Context) error {
	err := n.awaitRoom(ctx, func() error {
		cfg := n.storeConfig()
		cfg.Listener = nil
		s, err := store.NewStart(cfg)
		if err != nil {
			return err
		}
		n.starting.Store(s)
		return errors.Join(s.Decide(ctx), s.Close())
	})
	n.subjects.Cluster = n.peers.name()
	return err
}

// beginning is what this coordinator says of itself before its log is open.
func (n *node) beginning() protocol.Self {
	a := store.Answer{Phase: store.PhaseOpening}
	if s := n.starting.Load(); s != nil {
		a = s.Answer()
	}
	self := n.identity(n.peers.name(), a)
	self.Problem = n.waits()
	return self
}

// waits says for what a coordinator waits that starts.
func (n *node) waits() string {
	if full := n.disk.Load(); full != nil {
		return fmt.Sprintf("the disk is full; this coordinator starts once there is room: %v", *full)
	}
	if s := n.starting.Load(); s != nil && s.Waits() != "" {
		return s.Waits()
	}
	return "this coordinator is starting"
}

// markUsed writes down that this coordinator has had a log.
func (n *node) markUsed() error {
	if n.roster.kept.Used {
		return nil
	}
	kept := n.roster.kept
	kept.Used = true
	if err := kept.write(n.cfg.Dir); err != nil {
		return fmt.Errorf("that this coordinator has a log could not be written down: %w", err)
	}
	n.roster.kept = kept
	return nil
}

// comparePeers warns where --peers is not the list of members.
func (n *node) comparePeers() {
	var given, have []string
	for _, p := range n.cfg.Peers {
		given = append(given, p.ID)
	}
	for _, m := range n.store.Members() {
		have = append(have, m.ID)
	}
	slices.Sort(given)
	recovers := n.store.Answer().Phase == store.PhaseRecovering // its list may be of long ago
	if len(given) > 1 && len(have) > 0 && !recovers && !slices.Equal(given, have) {
		n.cfg.Log.Warn("--peers is not the list of members, which decides", "peers", given, "members", have)
	}
}

package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/protocol"
)

// openIdentity reads what the coordinator's folder says of the cluster. Nothing is written.
func (n *node) openIdentity(ctx context.Context) (err error) {
	kept := n.cfg.kept
	n.ofCluster, n.damaged = n.cfg.clusterID() // the folder of Raft has it as well
	if n.damaged != nil && !errors.Is(n.damaged, store.ErrCorrupt) {
		return n.damaged
	}
	if len(n.cfg.Join) > 0 && n.ofCluster == "" && n.damaged == nil {
		c, err := n.joinCluster(ctx)
		if err != nil {
			return err
		}
		n.joins, kept.External, kept.Members = c.Cluster, c.External, c.coordinators
	}
	if n.cfg.NATS == "" {
		n.cfg.NATS = kept.External
	}
	n.roster = newRoster(&n.cfg, kept)
	n.peers = newPeers(n.roster)
	if len(kept.Members) == 0 {
		n.roster.kept.Members = n.roster.known()
	}
	return nil
}

// openStart finds out how this coordinator begins: with what its folder has, with a
// new cluster, or as a member that the leader of a cluster adds. That may take until others
// are there; HTTP answers meanwhile. The ports are open, so what fails later changes nothing.
func (n *node) openStart(ctx context.Context) error {
	err := n.awaitRoom(ctx, func() (err error) {
		if n.folder, err = n.claim(); err != nil {
			return err
		}
		n.starting.Store(n.folder)
		n.disk.Store(nil) // to decide may take long
		i := n.folder.Identity()
		switch {
		case n.damaged != nil && i.Cluster == "":
			err = n.damaged // nobody knows of which cluster it was
		case n.joins != "" && i.Cluster == "":
			err = n.folder.Join(n.joins)
		case n.ofCluster != "" && i.Cluster != "" && i.Cluster != n.ofCluster:
			err = fmt.Errorf("%s: %w: the Raft log is from cluster %s, but the CLUSTER file names cluster %s", n.cfg.Dir, store.ErrFolder, i.Cluster, n.ofCluster)
		default:
			err = n.folder.Decide(ctx)
		}
		if err != nil {
			n.starting.Store(nil)
			return errors.Join(err, n.folder.Close())
		}
		return nil
	})
	if err != nil {
		return err
	}
	n.onClose(func() {
		if n.folder != nil { // the store has not taken it
			n.folder.Close()
		}
	})
	i := n.folder.Identity()
	n.subjects.Cluster = i.Cluster
	n.roster.founded(i.Founders, n.peers.entries())
	return n.checkAlone(ctx, i.Cluster, i.Directory)
}

// claim takes the folder of Raft. If it does not prove what this coordinator has done, and
// others have what it had, it is set aside, and this coordinator begins with another one.
func (n *node) claim() (*store.Folder, error) {
	cfg := n.storeConfig()
	f, err := store.Claim(cfg)
	if errors.Is(err, store.ErrCorrupt) && n.replicated() {
		return n.reset(err)
	}
	return f, err
}

// reset sets the folder of Raft aside: what is in it does not prove what was acknowledged.
func (n *node) reset(why error) (*store.Folder, error) {
	n.cfg.Log.Error("the Raft log of this coordinator is damaged and set aside; the coordinator fetches the log from the others, and then votes again", "error", why)
	return store.Reset(n.storeConfig())
}

// replicated reports whether others have what this coordinator has.
func (n *node) replicated() bool { return len(n.roster.known()) > 1 }

// openStore opens the log. One that is corrupt is fetched from the others.
func (n *node) openStore(ctx context.Context) error {
	cfg := n.storeConfig()
	cfg.Listener = n.raft
	var s *store.Store
	err := n.awaitRoom(ctx, func() (err error) {
		if n.folder == nil { // an earlier try has released it
			if n.folder, err = n.claim(); err != nil {
				return err
			}
		}
		if i := n.folder.Identity(); i.Cluster == "" { // it was reset
			if err := n.folder.Join(n.subjects.Cluster); err != nil {
				return err
			}
		}
		n.disk.Store(nil) // to read the log may take long
		f := n.folder
		n.folder = nil // the store's from here on
		s, err = store.Open(cfg, f)
		cfg.Listener = nil // Open closes it if it fails
		if !errors.Is(err, store.ErrCorrupt) || !n.replicated() {
			return err
		}
		if n.folder, err = n.reset(err); err != nil {
			return err
		}
		if err = n.folder.Join(n.subjects.Cluster); err != nil {
			return err
		}
		f, n.folder = n.folder, nil
		s, err = store.Open(cfg, f)
		return err
	})
	n.starting.Store(nil)
	if err != nil {
		return err
	}
	n.store = s
	n.copies = n.newCopies()
	n.roster.store.Store(s)
	n.membership = n.service()
	n.onClose(func() {
		if err := s.Close(); err != nil {
			n.cfg.Log.Warn("Raft was not closed cleanly", "error", err)
		}
	})
	n.comparePeers()
	if n.own, err = holdFolder(n.cfg.Dir, n.blobs.Folder); err != nil {
		return err
	}
	n.onClose(n.own.close)
	return nil
}

// beginning is what this coordinator says of itself before its log is open.
func (n *node) beginning() protocol.Self {
	a := store.Answer{Phase: store.PhaseOpening}
	if f := n.starting.Load(); f != nil {
		a = f.Answer()
	}
	self := n.identity(a)
	self.Problem = n.waits()
	return self
}

// waits says for what a coordinator waits that starts.
func (n *node) waits() string {
	if full := n.disk.Load(); full != nil {
		return fmt.Sprintf("the disk is full; this coordinator starts once the disk has free space: %v", *full)
	}
	if f := n.starting.Load(); f != nil && f.Waits() != "" {
		return f.Waits()
	}
	return "this coordinator is starting"
}

// checkAlone refuses to run a second process with the identity of one that runs: a folder was
// copied, and one voter would vote twice. The others say where they take this coordinator to
// be, as does its own folder.
func (n *node) checkAlone(ctx context.Context, cluster, directory string) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	self := n.roster.self
	var at []string
	if m, ok := n.roster.kept.find(n.cfg.ID); ok {
		at = append(at, m.HTTP)
	}
	others := slices.DeleteFunc(n.roster.known(), func(m protocol.MemberEntry) bool { return m.ID == n.cfg.ID })
	clusters := make([]protocol.Cluster, len(others))
	var asking sync.WaitGroup
	for k, m := range others {
		asking.Go(func() { _ = ask(ctx, m.HTTP, protocol.ClusterLocal, &clusters[k]) }) // one that is down says nothing
	}
	asking.Wait()
	for _, c := range clusters {
		for _, one := range c.Coordinators {
			if one.ID == n.cfg.ID && c.ID == cluster {
				at = append(at, one.HTTP)
			}
		}
	}
	slices.Sort(at)
	for _, address := range slices.Compact(at) {
		if address == self.HTTP || address == "" {
			continue
		}
		other, err := askSelf(ctx, address)
		if err == nil && other.ID == n.cfg.ID && other.Cluster == cluster && other.Directory == directory && other.Process != n.process {
			return fmt.Errorf("%w: coordinator %s of cluster %s already runs at %s with a copy of the folder %s: stop one of the two processes, or start this one with an empty folder and another --id",
				ErrDuplicate, n.cfg.ID, cluster, address, n.cfg.Dir)
		}
	}
	return nil
}

// ErrDuplicate ends a coordinator whose identity another process has.
var ErrDuplicate = errors.New("this coordinator already runs elsewhere")

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
	have = slices.Compact(have)
	if len(given) > 1 && len(have) > 0 && !slices.Equal(given, have) {
		n.cfg.Log.Warn("--peers differs from the list of members; the list of members is used", "peers", given, "members", have)
	}
}

package store

import (
	"errors"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// Open starts a node: it takes the folder, restores the last snapshot, listens,
// and joins its peers. A new folder begins the cluster of this node alone, or that of
// Config.Peers, once Start has decided so; with Config.Join the node waits until the
// leader of another adds it.
// Errors wrap ErrLocked or ErrFolder, or name the address or path at fault;
// nothing is left behind then.
func Open(config Config) (*Store, error) {
	c, err := config.withDefaults()
	if err != nil {
		return nil, errors.Join(err, closeListener(&config))
	}
	s := newStore(c)
	if err := s.open(newLog(c.Logger)); err != nil {
		return nil, errors.Join(err, s.release())
	}
	s.work.Go(s.relay)
	s.work.Go(s.maintain)
	return s, nil
}

func closeListener(c *Config) error {
	if c.Listener == nil {
		return nil
	}
	return c.Listener.Close()
}

// open takes what the store needs, in the order in which release gives it back
// backwards.
func (s *Store) open(log hclog.Logger) (err error) {
	if s.stream, err = listen(&s.config); err != nil {
		return err
	}
	if s.folder, err = openFolder(&s.config); err != nil {
		return err
	}
	return s.startNode(log)
}

// bootstrap writes the first entry, the list of voters, into an empty log.
func bootstrap(log *diskLog, stable raft.StableStore, snapshots raft.SnapshotStore, t raft.Transport, c *raft.Config, voters []raft.Server) error {
	list := raft.Configuration{Servers: voters}
	err := raft.BootstrapCluster(c, log, stable, snapshots, t, list)
	if !errors.Is(err, raft.ErrCantBootstrap) {
		return err
	}
	last, err := log.LastIndex()
	if err != nil || last > 0 {
		return err
	}
	if kept, err := snapshots.List(); err != nil || len(kept) > 0 {
		return err
	}
	// A crash cut BootstrapCluster short, between the term and this entry.
	return log.StoreLog(&raft.Log{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(list)})
}

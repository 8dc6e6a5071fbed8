package store

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
)

// Open starts a node: it takes the folder, restores the last snapshot, listens,
// and joins its peers. A new folder begins the cluster that Config.Peers lists.
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
	if s.folder, err = openFolder(s.config.Dir, s.config.ID); err != nil {
		return err
	}
	if s.log, err = wal.Open(s.folder.log(), wal.WithSegmentSize(s.config.SegmentBytes), wal.WithLogger(log.Named("wal"))); err != nil {
		return fmt.Errorf("store: the log in %s: %w", s.folder.log(), err)
	}
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(s.folder.path, retainSnapshots, log.Named("snapshot"))
	if err != nil {
		return fmt.Errorf("store: the snapshots in %s: %w", s.folder.path, err)
	}
	voters, at := servers(&s.config, s.stream.advert)
	s.transport = raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		ServerAddressProvider: at, Logger: log.Named("net"), Stream: s.stream, MaxPool: pooledConns, Timeout: s.config.patience(),
	})
	return s.start(voters, snapshots, s.config.raft(s.notify, log))
}

// start runs the Raft node.
func (s *Store) start(voters []raft.Server, snapshots raft.SnapshotStore, c *raft.Config) error {
	if err := bootstrap(s.log, snapshots, s.transport, c, voters); err != nil {
		return fmt.Errorf("store: beginning the log in %s: %w", s.folder.log(), err)
	}
	r, err := raft.NewRaft(c, s.fsm, s.log, s.log, snapshots, s.transport)
	if err != nil {
		return fmt.Errorf("store: folder %s: %w", s.folder.path, err)
	}
	s.raft, s.shutdown = r, sync.OnceValue(r.Shutdown)
	return s.checkMembers(voters)
}

// bootstrap writes the first entry, the list of voters, into an empty log.
func bootstrap(log *wal.WAL, snapshots raft.SnapshotStore, t raft.Transport, c *raft.Config, voters []raft.Server) error {
	list := raft.Configuration{Servers: voters}
	err := raft.BootstrapCluster(c, log, log, snapshots, t, list)
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

// checkMembers refuses a list of peers that is not the one in the log: Raft would
// go by the latter, whatever the operator meant.
func (s *Store) checkMembers(voters []raft.Server) error {
	f := s.raft.GetConfiguration()
	if err := f.Error(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	have, want := ids(f.Configuration().Servers), ids(voters)
	if !slices.Equal(have, want) {
		return fmt.Errorf("store: folder %s is %w: its cluster is %v, the peers given are %v", s.folder.path, ErrFolder, have, want)
	}
	return nil
}

func ids(servers []raft.Server) []string {
	var list []string
	for _, s := range servers {
		list = append(list, string(s.ID))
	}
	slices.Sort(list)
	return list
}

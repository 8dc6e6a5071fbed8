package store

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/hashicorp/raft"

	"github.com/coppice-ldl/coppice/coordinator/state"
)

// seedTerm is the term of the snapshot that a seeded cluster begins with.
const seedTerm = 1

// Seed makes the folder of node id of a new cluster of these peers, which begins
// with a state instead of nothing: its index is that of the first snapshot, and
// the log goes on from there. The folder must be empty or missing. Each node of
// the cluster is to be seeded with the same state and peers.
func Seed(dir, id string, peers []Peer, s *state.State) (err error) {
	log := slog.New(slog.DiscardHandler)
	f, err := openFolder(&Config{ID: id, Dir: dir, Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	files, err := raft.NewFileSnapshotStoreWithLogger(f.path, retainSnapshots, newLog(log))
	if err != nil {
		return fmt.Errorf("store: the snapshots in %s: %w", f.path, err)
	}
	if kept, err := files.List(); err != nil || len(kept) > 0 {
		return errors.Join(fmt.Errorf("store: folder %s is %w: it has snapshots already", f.path, ErrFolder), err)
	}
	if err := f.stable.SetUint64([]byte(keyTerm), seedTerm); err != nil {
		return err
	}
	snapshots, err := newSummed(files, f.path)
	if err != nil {
		return err
	}
	if err := seed(snapshots, peers, s); err != nil {
		return err
	}
	return f.drop(newName) // it is a member's from here on
}

// seed writes the snapshot.
func seed(snapshots *summed, peers []Peer, s *state.State) error {
	var voters raft.Configuration
	for _, p := range peers {
		voters.Servers = append(voters.Servers, raft.Server{Suffrage: raft.Voter, ID: raft.ServerID(p.ID), Address: raft.ServerAddress(p.RaftAddr)})
	}
	_, nowhere := raft.NewInmemTransport("") // only encodes addresses
	sink, err := snapshots.Create(raft.SnapshotVersionMax, s.Index(), seedTerm, voters, 1, nowhere)
	if err != nil {
		return fmt.Errorf("store: a snapshot: %w", err)
	}
	if err := s.Encode(sink); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}

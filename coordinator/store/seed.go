package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/coppice-ldl/coppice/coordinator/state"
)

// firstTerm is the term of what a cluster begins with. No leader is of it.
const firstTerm = 1

// Seed makes the folder of a node of a new cluster that begins with a state instead of
// nothing: its index is that of the first snapshot, and the log goes on from there. The folder
// must be empty or missing. Each node of the cluster is to be seeded with the same state and
// the same cluster; Decide finds out whether they were. With Config.Peers of this node alone
// it is settled at once.
func Seed(config Config, cluster string, s *state.State) (err error) {
	f, err := Claim(config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	i := f.Identity()
	if i.Cluster != "" {
		return fmt.Errorf("store: folder %s is %w: the folder is already used by cluster %s", f.path, ErrFolder, i.Cluster)
	}
	var b bytes.Buffer
	if err := s.Encode(&b); err != nil {
		return err
	}
	sum := binary.LittleEndian.AppendUint32(nil, crc32.Checksum(b.Bytes(), castagnoli))
	if err := replaceFile(filepath.Join(f.path, seedName), b.String()+string(sum)); err != nil {
		return err
	}
	i.Cluster, i.Seeded = cluster, true
	if !f.config.replicated() {
		i.Founders = []Server{{ID: i.ID, Directory: i.Directory, RaftAddr: f.config.selfAddr()}}
	}
	return f.writeIdentity("settle", i)
}

// seedState reads the state that a cluster begins with.
func (f *Folder) seedState() (*state.State, error) {
	path := filepath.Join(f.path, seedName)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, corrupted(path, err)
	}
	at := len(b) - crc32.Size
	if at < 0 || binary.LittleEndian.Uint32(b[at:]) != crc32.Checksum(b[:at], castagnoli) {
		return nil, corrupted(path, errors.New("the checksum does not match"))
	}
	s, err := state.Decode(bytes.NewReader(b[:at]))
	if err != nil {
		return nil, corrupted(path, err)
	}
	return s, nil
}

// writeFirst writes what the log of a cluster begins with into a folder whose log is empty:
// the list of its founders, or a snapshot of the state that was restored. A node that was
// added to a cluster gets it from the leader. A crash in between leaves the log empty.
func (f *Folder) writeFirst(log *diskLog, snapshots *summed) error {
	i := f.Identity()
	last, err := log.LastIndex()
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	kept, err := snapshots.List()
	if err != nil {
		return fmt.Errorf("store: cannot read the snapshots in %s: %w", f.path, err)
	}
	if last == 0 && len(kept) == 0 && len(i.Founders) > 0 {
		if err := f.stable.SetUint64([]byte(keyTerm), firstTerm); err != nil {
			return err
		}
		var voters raft.Configuration
		for _, s := range i.Founders {
			voters.Servers = append(voters.Servers, raft.Server{Suffrage: raft.Voter, ID: s.raftID(), Address: s.address()})
		}
		if !i.Seeded {
			return log.StoreLog(&raft.Log{Index: 1, Term: firstTerm, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(voters)})
		}
		if err := f.writeSeed(snapshots, voters); err != nil {
			return err
		}
	}
	if !i.Seeded {
		return nil
	}
	if err := os.Remove(filepath.Join(f.path, seedName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

func (f *Folder) writeSeed(snapshots *summed, voters raft.Configuration) error {
	s, err := f.seedState()
	if err != nil {
		return err
	}
	_, nowhere := raft.NewInmemTransport("") // only encodes addresses
	sink, err := snapshots.Create(raft.SnapshotVersionMax, s.Index(), firstTerm, voters, 1, nowhere)
	if err != nil {
		return fmt.Errorf("store: cannot write a snapshot: %w", err)
	}
	if err := s.Encode(sink); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}

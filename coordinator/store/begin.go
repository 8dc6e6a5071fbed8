package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/internal/wait"
)

// The pauses between two rounds of questions, and between two log lines about them.
const (
	leastPause = 10 * time.Millisecond
	mostPause  = 250 * time.Millisecond
	quietFor   = time.Second // other coordinators may start a little later without a log line
	reportEach = 5 * time.Second
)

// Answer describes the node before its log is open.
func (f *Folder) Answer() Answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := Answer{
		Phase: PhaseNew, Cluster: f.identity.Cluster, ID: f.identity.ID, Directory: f.identity.Directory,
		Founders: f.identity.Founders,
		Seeded:   f.identity.Seeded, RaftAddr: f.config.selfAddr(), Peers: f.config.PeerList, Heartbeat: f.config.Heartbeat,
	}
	switch {
	case f.adopting:
		a.Phase, a.Cluster = PhaseOpening, ""
	case f.identity.settled():
		a.Phase = PhaseOpening
	case a.Cluster == "":
		a.Cluster = f.config.Cluster
	}
	return a
}

// Waits says what the node waits for, or nothing.
func (f *Folder) Waits() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waits
}

// Decide returns once it is on the disk how the node begins: alone, with its peers, or as a
// node that a leader adds. It asks the others by Config.Ask until that is clear or ctx is
// done.
func (f *Folder) Decide(ctx context.Context) error {
	if i := f.Identity(); i.settled() {
		return nil
	}
	c := &f.config
	self := f.Answer()
	if !c.replicated() {
		if self.Cluster != "" && !self.Seeded {
			return fmt.Errorf("store: folder %s: %w: the folder is empty, although this coordinator is a member of cluster "+
				"%s; %s", f.path, ErrCorrupt, self.Cluster, aloneRemedy)
		}
		d := found(&self, nil, nil, self.Cluster)
		return f.Begin(d.cluster, d.founders)
	}
	began, told, pause := time.Now(), time.Time{}, leastPause
	for {
		replies := f.ask(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		d := decide(&self, replies)
		if done, err := f.settle(ctx, &d); done || err != nil {
			return err
		}
		if time.Since(began) >= quietFor && time.Since(told) >= reportEach {
			told = time.Now()
			c.Logger.Warn(f.Waits())
		}
		wait.For(ctx, pause)
		pause = min(2*pause, mostPause)
	}
}

// aloneRemedy is for a single coordinator with a folder that does not prove what it has
// done.
const aloneRemedy = "a single coordinator cannot fetch lost data from others: restore a backup, or empty its whole " +
	"folder to start again"

// ask asks all other peers at the same time.
func (f *Folder) ask(ctx context.Context) map[string]reply {
	ctx, cancel := context.WithTimeout(ctx, f.config.patience())
	defer cancel()
	replies := make(map[string]reply)
	var mu sync.Mutex // guards replies
	var asking sync.WaitGroup
	for _, p := range f.config.Peers {
		if p.ID == f.config.ID {
			continue
		}
		asking.Go(func() {
			answer, err := f.config.Ask(ctx, p.ID)
			mu.Lock()
			defer mu.Unlock()
			replies[p.ID] = reply{answer, err}
		})
	}
	asking.Wait()
	return replies
}

// settle acts on a decision and reports whether the node is settled.
func (f *Folder) settle(ctx context.Context, d *decision) (done bool, err error) {
	log := f.config.Logger
	switch {
	case d.cluster == "":
		f.mu.Lock()
		defer f.mu.Unlock()
		f.waits = fmt.Sprintf("the folder is new; the cluster starts once all %d coordinators answer, each with a new "+
			"folder and the same --peers: %s",
			len(f.config.Peers), strings.Join(d.waits, "; "))
		return false, nil
	case len(d.founders) == 0:
		log.Info("the cluster of this coordinator is already running; the leader adds the coordinator, which votes once it "+
			"has caught up", "cluster", d.cluster)
		return true, f.Join(d.cluster)
	case d.from != "" && !f.confirmed(ctx, d):
		return false, nil
	}
	log.Info("a new cluster starts", "cluster", d.cluster, "with", serverIDs(d.founders))
	return true, f.Begin(d.cluster, d.founders)
}

// confirmed asks the coordinator that decided once more, after this node has stopped to say
// that it is new. If the other one was emptied meanwhile, it may have begun another cluster
// with this node.
func (f *Folder) confirmed(ctx context.Context, d *decision) bool {
	f.mu.Lock()
	f.adopting = true
	f.mu.Unlock()
	again, err := f.config.Ask(ctx, d.from)
	same := err == nil && again.Cluster == d.cluster && slices.Equal(again.Founders, d.founders)
	if !same {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.adopting = false
	}
	return same
}

// reply is what another coordinator answered, or why it did not.
type reply struct {
	Answer
	err error
}

// decision is how a node begins.
type decision struct {
	cluster  string   // the cluster to belong to; empty if the node has to wait
	founders []Server // the founders of cluster, if it begins with them
	from     string   // the coordinator that decided so; empty if it is the node itself
	waits    []string // reasons why it may not begin yet
}

// decide judges the answers of others for a node that is not settled. See DESIGN.md, A
// first start. A node begins a cluster only together with all its peers, so every entry
// acknowledged later is on a majority of the founders.
func decide(self *Answer, replies map[string]reply) (d decision) {
	ids := slices.Sorted(maps.Keys(replies))
	cluster, running := self.Cluster, false
	for _, id := range ids {
		r := replies[id]
		switch {
		case r.err != nil, r.Cluster == "":
		case cluster == "":
			cluster = r.Cluster
		case cluster != r.Cluster:
			remedy := "give every coordinator folders of one cluster"
			if self.Seeded {
				remedy = "restore the same backup on every coordinator"
			}
			d.waits = append(d.waits, fmt.Sprintf("%s is a member of cluster %s, not of cluster %s: %s", id, r.Cluster,
				cluster, remedy))
		}
		running = running || r.err == nil && r.Cluster != "" && r.Phase != PhaseNew
	}
	switch {
	case len(d.waits) > 0:
	case running:
		d = belong(self, ids, replies, cluster)
	default:
		d = found(self, ids, replies, cluster)
	}
	if d.cluster == "" {
		for _, id := range ids {
			if r := replies[id]; r.err != nil {
				d.waits = append(d.waits, r.err.Error())
			}
		}
	}
	return d
}

// belong decides how a node begins if others have a cluster already.
func belong(self *Answer, ids []string, replies map[string]reply, cluster string) (d decision) {
	var strangers []string
	for _, id := range ids {
		r := replies[id]
		if r.err != nil || r.Phase == PhaseNew || r.Cluster == "" {
			continue
		}
		if slices.ContainsFunc(r.Founders, func(s Server) bool { return s.ID == self.ID && s.Directory == self.Directory }) {
			return decision{cluster: cluster, founders: r.Founders, from: id}
		}
		members := r.Members
		if len(members) == 0 {
			members = r.Founders // it does not know who the members are now
		}
		listed := slices.ContainsFunc(members, func(s Server) bool { return s.ID == self.ID })
		switch {
		case listed:
			d.cluster = cluster
		case len(r.Members) == 0 && r.Phase == PhaseOpening:
			d.waits = append(d.waits, fmt.Sprintf("%s is still reading its log", id))
		case len(r.Members) == 0:
			d.waits = append(d.waits, fmt.Sprintf("%s has no leader yet", id))
		default:
			strangers = append(strangers, fmt.Sprintf("%s is a member of cluster %s, which consists of %s", id, cluster,
				serverIDs(members)))
		}
	}
	if d.cluster == "" && len(strangers) > 0 {
		d.waits = append(d.waits, strings.Join(strangers, "; "),
			fmt.Sprintf("%s is not one of them: start it with --join-cluster and add it (coppice cluster add %s=HOST:PORT), "+
				"or correct --peers", self.ID, self.ID))
	}
	return d
}

// found decides whether a node begins a cluster with its peers, if none has a cluster. The
// first of them by ID decides for all.
func found(self *Answer, ids []string, replies map[string]reply, cluster string) (d decision) {
	if self.Cluster != "" && !self.Seeded {
		d.waits = append(d.waits, fmt.Sprintf("this coordinator was a member of cluster %s, but no coordinator that "+
			"answers has its log: start a coordinator that has it, or restore a backup", self.Cluster))
	}
	founders := []Server{{ID: self.ID, Directory: self.Directory, RaftAddr: self.RaftAddr}}
	first := self.ID
	for _, id := range ids {
		r := replies[id]
		switch {
		case r.err != nil: // decide says so
			first = ""
		case r.Phase != PhaseNew || r.Directory == "":
			d.waits = append(d.waits, fmt.Sprintf("%s is starting", id))
		case r.Cluster != "" && !r.Seeded:
			d.waits = append(d.waits, fmt.Sprintf("%s was a member of cluster %s and has lost its log", id, r.Cluster))
		case r.Seeded != self.Seeded:
			restored, empty := self.ID, id
			if r.Seeded {
				restored, empty = id, self.ID
			}
			d.waits = append(d.waits, fmt.Sprintf("%s was restored from a backup, and %s was not: restore the same backup on "+
				"every coordinator", restored, empty))
		case r.Peers != self.Peers:
			d.waits = append(d.waits, fmt.Sprintf("%s has --peers %s, this coordinator has %s: give every coordinator the "+
				"same list", id, r.Peers, self.Peers))
		case r.Heartbeat != self.Heartbeat:
			d.waits = append(d.waits, fmt.Sprintf("%s has --heartbeat %v, this coordinator has %v: give every coordinator the "+
				"same value", id, r.Heartbeat, self.Heartbeat))
		}
		founders = append(founders, Server{ID: id, Directory: r.Directory, RaftAddr: r.RaftAddr})
		if first != "" {
			first = min(first, id)
		}
	}
	if len(d.waits) > 0 || first == "" {
		return d
	}
	if first != self.ID {
		d.waits = append(d.waits, fmt.Sprintf("%s starts the cluster", first))
		return d
	}
	slices.SortFunc(founders, func(a, b Server) int { return strings.Compare(a.ID, b.ID) })
	if cluster == "" {
		cluster = NewID()
	}
	return decision{cluster: cluster, founders: founders}
}

// serverIDs lists the coordinators of servers.
func serverIDs(list []Server) string {
	var ids []string
	for _, s := range list {
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	return strings.Join(slices.Compact(ids), ", ")
}

// firstTerm is the term of the first entry of a cluster. No leader has it.
const firstTerm = 1

// Seed makes the folder of a node of a new cluster that begins with a state. The first
// snapshot has the index of the state, and the log goes on from there. The folder must be
// empty or missing. Each node of the cluster must be seeded with the same state and
// cluster; Decide checks that. If Config.Peers has this node alone, it is settled at once.
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

// writeFirst writes what the log of a cluster begins with, if the log is empty: the list of
// the founders, or a snapshot of the state that was restored. A node that was added gets it
// from the leader. A crash in between leaves the log empty.
func (f *Folder) writeFirst(log *diskLog, snapshots *snapshots) error {
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
			voters.Servers = append(voters.Servers, raft.Server{Suffrage: raft.Voter, ID: raftID(s), Address: addressOf(s)})
		}
		if !i.Seeded {
			return log.StoreLog(&raft.Log{Index: 1, Term: firstTerm, Type: raft.LogConfiguration,
				Data: raft.EncodeConfiguration(voters)})
		}
		if err := f.writeSeed(snapshots, voters); err != nil {
			return err
		}
	}
	if !i.Seeded {
		return nil
	}
	return f.dropSeed()
}

// writeSeed writes the state in SEED as a snapshot.
func (f *Folder) writeSeed(snapshots *snapshots, voters raft.Configuration) error {
	path := filepath.Join(f.path, seedName)
	b, err := os.ReadFile(path)
	if err != nil {
		return corrupted(path, err)
	}
	at := len(b) - crc32.Size
	if at < 0 || binary.LittleEndian.Uint32(b[at:]) != crc32.Checksum(b[:at], castagnoli) {
		return corrupted(path, errors.New("the checksum does not match"))
	}
	s, err := state.Decode(bytes.NewReader(b[:at]))
	if err != nil {
		return corrupted(path, err)
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

package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Start is a node before its Raft runs: it finds out what its folder proves, and
// asks the others where the folder alone does not do. What it decides is on the disk
// before Open acts on it.
type Start struct {
	config Config
	folder *folder

	mu       sync.Mutex
	standing standing
	report   string // for what it waits
}

// The pauses between two rounds of questions, and between two log lines about them.
const (
	leastPause = 10 * time.Millisecond
	mostPause  = 250 * time.Millisecond
	quietFor   = time.Second // others that start a little later are no news
	reportEach = 5 * time.Second
)

// NewStart takes a node's folder, which is made if it does not exist, and looks at
// it. Errors: as of Open; ErrCorrupt where the node is alone and its folder has
// forgotten its term.
func NewStart(config Config) (*Start, error) {
	c, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Start{config: c}
	if s.folder, err = claim(c.Dir); err != nil {
		return nil, err
	}
	if err := s.look(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// look finds out how the folder stands.
func (s *Start) look() (err error) {
	if s.standing, err = s.folder.look(s.config.ID); err != nil {
		return err
	}
	if s.config.Used && (s.standing.phase == PhaseNew || s.standing.phase == PhaseBegun) {
		s.standing.phase, s.standing.why = PhaseLost, fmt.Sprintf("%s is empty, though this coordinator had a log", s.config.Dir)
	}
	switch s.standing.phase {
	case PhaseLost:
		if !s.config.replicated() {
			return s.standing.alone(s.config.Dir)
		}
		return s.folder.lose(s.standing.why)
	case PhaseNew:
		return s.write("new", func() error { return s.folder.keepMark(s.config.ID, &s.standing) })
	}
	return nil
}

// write runs a step that writes; a fault of tests stands for a crash before it.
func (s *Start) write(step string, f func() error) error {
	if err := s.config.fails(step); err != nil {
		return err
	}
	return f()
}

// Close releases the folder, for Open or for good.
func (s *Start) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.folder == nil {
		return nil
	}
	err := s.folder.close()
	s.folder = nil
	return err
}

// Answer says how this node is.
func (s *Start) Answer() Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := Answer{Phase: s.standing.phase}
	switch a.Phase {
	case PhaseNew:
		a.Mark = s.standing.mark
	case PhaseBegun:
		a.Founders = s.standing.founders
	}
	return a
}

// Waits says what the node waits for, or nothing.
func (s *Start) Waits() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.report
}

// Decide returns once it is on the disk how the node begins: a new cluster, or from
// which term on it obeys leaders, or that it has all it needs. It asks the others by
// Config.Ask until that is clear or ctx is done.
func (s *Start) Decide(ctx context.Context) error {
	phase := s.Answer().Phase
	if phase == PhaseNew && (s.config.Join || len(s.config.Peers) <= 1) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.standing.phase = PhaseOpening // which begins at once, or waits to be added
		return nil
	}
	if phase != PhaseNew && phase != PhaseLost {
		return nil
	}
	ids := make(map[string]bool)
	for _, p := range s.config.Peers {
		ids[p.ID] = true
	}
	began, told, wait := time.Now(), time.Time{}, leastPause
	for {
		replies := s.ask(ctx, ids)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		done, err := s.judge(replies, time.Since(began) < s.config.Heartbeat)
		if done || err != nil {
			return err
		}
		for _, r := range replies { // those who became members later
			for _, id := range r.Voters {
				ids[id] = true
			}
		}
		if time.Since(began) >= quietFor && time.Since(told) >= reportEach {
			told = time.Now()
			s.config.Logger.Warn(s.Waits())
		}
		if s.Answer().Phase == phase {
			pause(ctx, wait)
			wait = min(2*wait, mostPause)
		}
		phase = s.Answer().Phase
	}
}

// ask asks other nodes at once.
func (s *Start) ask(ctx context.Context, ids map[string]bool) map[string]reply {
	ctx, cancel := context.WithTimeout(ctx, s.config.patience())
	defer cancel()
	list := slices.DeleteFunc(sorted(ids), func(id string) bool { return id == s.config.ID })
	replies, answers := make(map[string]reply), make([]reply, len(list))
	var asking sync.WaitGroup
	for i, id := range list {
		asking.Go(func() { answers[i].Answer, answers[i].err = s.config.Ask(ctx, id) })
	}
	asking.Wait()
	for i, id := range list {
		replies[id] = answers[i]
	}
	return replies
}

// judge acts on what the others say, and reports whether it is clear now how to
// begin. It is early while others that start at the same time may not answer yet:
// those that a cluster begins without have to fetch its log first.
func (s *Start) judge(replies map[string]reply, early bool) (done bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var v verdict
	if s.standing.phase == PhaseNew {
		v = decideNew(s.config.ID, s.standing.mark, replies)
	} else {
		v = decideLost(s.config.ID, replies)
	}
	switch {
	case v.lost != "":
		s.config.Logger.Info("the cluster has begun without this folder; what the others have is fetched before this coordinator votes", "reason", v.lost)
		s.standing = standing{phase: PhaseLost, why: v.lost}
		return false, s.write("lost", func() error { return s.folder.lose(v.lost) })
	case v.founders != nil && !(early && len(v.waits) > 0):
		if err := s.write("begun", func() error { return s.folder.keepBegun(s.config.ID, v.founders) }); err != nil {
			return false, err
		}
		s.standing.phase, s.standing.founders = PhaseBegun, maps.Clone(v.founders)
		s.config.Logger.Info("a new cluster begins", "with", sorted(v.founders))
	case s.standing.phase == PhaseLost && len(v.waits) == 0:
		if err := s.write("term", func() error { return s.folder.keepTerm(s.config.ID, v.term) }); err != nil {
			return false, err
		}
		s.standing.phase = PhaseOpening
		s.config.Logger.Info("every other voter has told its term; this coordinator obeys leaders of that or a later one", "term", v.term)
	default:
		s.report = s.describe(v.waits)
		return false, nil
	}
	s.report = ""
	return true, nil
}

// describe says what the node waits for, and what to do.
func (s *Start) describe(waits []string) string {
	text := strings.Join(waits, "; ")
	if s.standing.phase == PhaseLost {
		return fmt.Sprintf("this coordinator has lost what it remembered (%s); before it takes part again, every other voter must tell its term: %s; start those, or remove one that is gone for good: coppice cluster remove ID",
			s.standing.why, text)
	}
	n := len(s.config.Peers)
	return fmt.Sprintf("the folder is new; a cluster begins once %d of %d coordinators answer that theirs are new: %s; start the others, with the same --peers", majority(n), n, text)
}

// pause waits, or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

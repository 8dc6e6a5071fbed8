package speed

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Peer is a program that does the same work as Coppice, in a process of its own that
// is asked with lines of JSON: see harness/bench/peers/common.py.
type Peer struct {
	Name     string
	Versions map[string]string

	process *exec.Cmd
	stdin   io.WriteCloser
	lines   chan line // closed where the process has closed its stdout
	stderr  *tail
}

type line struct {
	text []byte
	err  error
}

// Absent says why a peer cannot run here: it is skipped.
type Absent struct{ Reason string }

func (a *Absent) Error() string { return a.Reason }

// Times that bound a peer.
const (
	peerStart = 2 * time.Minute // to load what it needs
	peerJob   = 4 * time.Minute // for a job
	peerEnd   = 5 * time.Second // to end once it is told to
)

// maxAnswer bounds a line of a peer, in bytes.
const maxAnswer = 1 << 20

// StartPeer starts a peer: an interpreter and its arguments, the script first. The
// error is an *Absent where the interpreter, or a module that the peer needs, is not
// installed.
func StartPeer(ctx context.Context, command string, args ...string) (p *Peer, err error) {
	path, err := exec.LookPath(command)
	if err != nil {
		return nil, &Absent{fmt.Sprintf("%s is not installed", command)}
	}
	p = &Peer{Name: "peer", process: exec.CommandContext(ctx, path, args...), stderr: &tail{}, lines: make(chan line)}
	p.process.Stderr = p.stderr
	p.process.WaitDelay = peerEnd
	if p.stdin, err = p.process.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.process.Start(); err != nil {
		return nil, &Absent{fmt.Sprintf("%s cannot be started: %v", command, err)}
	}
	go p.read(stdout)
	if err := p.hello(ctx); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// read passes on the lines of stdout.
func (p *Peer) read(stdout io.Reader) {
	defer close(p.lines)
	s := bufio.NewScanner(stdout)
	s.Buffer(nil, maxAnswer)
	for s.Scan() {
		p.lines <- line{text: slices.Clone(s.Bytes())}
	}
	if err := s.Err(); err != nil {
		p.lines <- line{err: err}
	}
}

// hello reads who the peer is.
func (p *Peer) hello(ctx context.Context) error {
	var h struct {
		Peer     string            `json:"peer"`
		Versions map[string]string `json:"versions"`
		Missing  string            `json:"missing"`
	}
	if err := p.answer(ctx, peerStart, &h); err != nil {
		return err
	}
	if h.Missing != "" {
		return &Absent{h.Missing}
	}
	if h.Peer == "" {
		return fmt.Errorf("the program to compare with does not tell its name")
	}
	p.Name, p.Versions = h.Peer, h.Versions
	return nil
}

// kindBoost is the kind of a peer's job that boosts trees, whose answer has a step for each tree.
const kindBoost = "boost"

// Do has the peer do a job and returns its figures. There must be so many.
func (p *Peer) Do(ctx context.Context, job Job, figures int) (f Figures, err error) {
	b, err := json.Marshal(job)
	if err != nil {
		return f, err
	}
	if _, err := p.stdin.Write(append(b, '\n')); err != nil {
		return f, p.died()
	}
	if err := p.answer(ctx, peerJob, &f); err != nil {
		return f, err
	}
	steps, _ := job["trees"].(int)
	if job["kind"] != kindBoost {
		steps = 0
	}
	if err := f.check(figures, steps); err != nil {
		return f, fmt.Errorf("the peer %s answers %w", p.Name, err)
	}
	return f, nil
}

// check refuses what no run can have found.
func (f *Figures) check(figures, steps int) error {
	if len(f.Seconds) != figures {
		return fmt.Errorf("with %d times, want %d", len(f.Seconds), figures)
	}
	if len(f.Steps) != steps {
		return fmt.Errorf("with %d trees, want %d", len(f.Steps), steps)
	}
	for _, s := range f.Seconds {
		if !(s > 0) {
			return fmt.Errorf("with a time of %v s, want more than 0", s)
		}
	}
	return nil
}

// answer reads a line of JSON.
func (p *Peer) answer(ctx context.Context, limit time.Duration, v any) error {
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-late.C:
		return fmt.Errorf("the peer %s does not answer within %v", p.Name, limit)
	case l, ok := <-p.lines:
		if !ok {
			return p.died()
		}
		if l.err != nil {
			return fmt.Errorf("the peer %s: %w", p.Name, l.err)
		}
		if err := parseLine(l.text, v); err != nil {
			return fmt.Errorf("the peer %s wrote %q, want a line of JSON: %w", p.Name, shortened(l.text), err)
		}
		return nil
	}
}

// parseLine reads a line that is one JSON value, with no key that v does not have.
func parseLine(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if d.More() {
		return errors.New("the line has more than one JSON value")
	}
	return nil
}

// died says how a peer ended that should not have.
func (p *Peer) died() error {
	p.process.Process.Kill()
	err := p.process.Wait()
	why := p.stderr.last()
	if why == "" && err != nil {
		why = err.Error()
	}
	return fmt.Errorf("the peer %s ended unexpectedly: %s", p.Name, why)
}

// Close tells the peer to end and waits until it has.
func (p *Peer) Close() {
	p.stdin.Close()
	late := time.AfterFunc(peerEnd, func() { p.process.Process.Kill() })
	defer late.Stop()
	for range p.lines { // what nobody wants any more
	}
	if p.process.ProcessState == nil {
		p.process.Wait() // how it ended says nothing
	}
}

// shortened is what an error shows of a line.
func shortened(b []byte) string {
	const most = 200
	if len(b) > most {
		return string(b[:most]) + "..."
	}
	return string(b)
}

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

const maxTail = 4 << 10

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.b = append(t.b, b...)
	t.b = t.b[max(0, len(t.b)-maxTail):]
	return len(b), nil
}

// last returns the last line that is not empty.
func (t *tail) last() string {
	lines := strings.Split(strings.TrimSpace(string(t.b)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

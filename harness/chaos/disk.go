package chaos

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/coppice-ldl/coppice/harness/chaos/system"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/internal/wait"
)

// fillDisk fills the disk of a coordinator, the leader among them, or of a worker;
// later there is room again.
func fillDisk(_ context.Context, s *strike) (func(context.Context) error, error) {
	n := pick(s, []*proc.Node{s.leader, s.follower(), s.worker()})
	ballast := filepath.Join(n.Dir, "ballast")
	s.on(n)
	err := fill(ballast)
	return func(context.Context) error { return os.Remove(ballast) }, err
}

// fill writes a file until the disk is full.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	buf := make([]byte, 1<<20)
	for len(buf) > 0 && err == nil {
		if _, err = f.Write(buf); errors.Is(err, syscall.ENOSPC) {
			buf, err = buf[:len(buf)/2], nil
		}
	}
	return errors.Join(err, f.Close())
}

// corruptBlob flips a byte in a blob of a coordinator and in a file of a worker's
// cache while both are down. The coordinator must answer with the right bytes, and
// nothing may be trained on the wrong ones.
func corruptBlob(_ context.Context, s *strike) (func(context.Context) error, error) {
	c, w := s.follower(), s.worker()
	s.on(c, w)
	if err := errors.Join(c.Kill(), w.Kill()); err != nil {
		return nil, err
	}
	digest, err := s.flipBlob(filepath.Join(c.Dir, "blobs"))
	if err == nil {
		_, err = s.flipBlob(w.Dir)
	}
	if err = errors.Join(err, c.Restart(), w.Restart()); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return s.serves(ctx, c, digest) }, nil
}

// flipBlob flips a byte of one of a folder's blobs.
func (s *strike) flipBlob(dir string) (digest string, err error) {
	var paths []string
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if name := filepath.Base(path); err == nil && e.Type().IsRegular() && len(name) == 2*sha256.Size {
			if _, bad := hex.DecodeString(name); bad == nil {
				paths = append(paths, path)
			}
		}
		return err
	})
	if err != nil || len(paths) == 0 {
		return "", errors.Join(err, fmt.Errorf("there are no blobs in %s", dir))
	}
	slices.Sort(paths)
	path := pick(s, paths)
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	return filepath.Base(path), flip(path, s.rng.Int64N(info.Size()))
}

// flip inverts the bits of one byte of a file.
func flip(path string, at int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	var b [1]byte
	if _, err = f.ReadAt(b[:], at); err == nil {
		b[0] ^= 0xff
		_, err = f.WriteAt(b[:], at)
	}
	return errors.Join(err, f.Close())
}

// serves waits until a coordinator has a blob whose file was corrupt, and has it
// right: each answer must be right.
func (s *strike) serves(ctx context.Context, n *proc.Node, digest string) error {
	if err := s.healthy(ctx); err != nil {
		return err
	}
	b, err := s.blob(ctx, n, digest)
	if err != nil {
		return fmt.Errorf("blob %.12s, whose file on %s is damaged: %w", digest, n.Name, err)
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != digest {
		return fmt.Errorf("%w: %s serves a damaged blob, %.12s", ErrFailed, n.Name, digest)
	}
	return nil
}

// corruptLog damages the end of a coordinator's log while it is down: a byte is
// inverted, or the file ends early.
func corruptLog(_ context.Context, s *strike) (func(context.Context) error, error) {
	n := s.follower()
	s.on(n)
	if err := n.Kill(); err != nil {
		return nil, err
	}
	err := s.damageLog(filepath.Join(n.Dir, "raft", "log"))
	return nil, errors.Join(err, n.Restart())
}

// tailBytes is how near to its end a log is damaged.
const tailBytes = 4 << 10

func (s *strike) damageLog(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, fmt.Errorf("there is no log in %s", dir))
	}
	for _, path := range slices.Backward(files) { // the last that has anything
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		end := int64(len(bytes.TrimRight(b, "\x00")))
		if end <= tailBytes {
			continue
		}
		at := end - 1 - s.rng.Int64N(tailBytes)
		if s.rng.IntN(2) == 0 {
			return os.Truncate(path, at)
		}
		return flip(path, at)
	}
	return nil
}

// corruptSnapshot flips a byte of a coordinator's last snapshot while it is down.
func corruptSnapshot(ctx context.Context, s *strike) (func(context.Context) error, error) {
	n := s.follower()
	dir := filepath.Join(n.Dir, "raft", "snapshots")
	for path := ""; path == ""; {
		var err error
		if path, err = lastSnapshot(dir); err == nil && path == "" {
			err = wait.For(ctx, lookPause)
		}
		if err != nil {
			return nil, fmt.Errorf("%s has no snapshot: %w", n.Name, err)
		}
	}
	s.on(n)
	if err := n.Kill(); err != nil {
		return nil, err
	}
	path, err := lastSnapshot(dir) // it may have taken one meanwhile
	if err == nil {
		err = s.damageSnapshot(path)
	}
	return nil, errors.Join(err, n.Restart())
}

// lastSnapshot returns the state of the newest snapshot that is complete; empty:
// there is none.
func lastSnapshot(dir string) (last string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "state.bin"))
	var newest time.Time
	for _, path := range files {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) { // an old one goes when a new one is there
			continue
		}
		if err != nil {
			return "", err
		}
		if !strings.HasSuffix(filepath.Dir(path), ".tmp") && info.ModTime().After(newest) {
			last, newest = path, info.ModTime()
		}
	}
	return last, err
}

func (s *strike) damageSnapshot(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Size() == 0 {
		return err
	}
	return flip(path, s.rng.Int64N(info.Size()))
}

// ioErrors shuts the disk of a coordinator, the leader among them, or of a worker down.
// What is imported meanwhile must be acknowledged, and be there later; the process is
// started again once its disk is well.
func ioErrors(_ context.Context, s *strike) (func(context.Context) error, error) {
	n := pick(s, []*proc.Node{s.leader, s.follower(), s.worker()})
	name := fmt.Sprintf("beside-%08x", s.rng.Uint32())
	away := s.between(leastAlone, mostAlone)
	s.on(n)
	return func(ctx context.Context) error {
		if err := wait.For(ctx, away); err != nil {
			return err
		}
		if err := s.keep(ctx, name); err != nil {
			return fmt.Errorf("the disk of %s has errors: %w", n.Name, err)
		}
		if err := errors.Join(n.Kill(), s.mendDisk(n), n.Restart()); err != nil {
			return err
		}
		return s.kept(ctx, name)
	}, system.ShutDown(n.Dir)
}

// mendDisk mounts the disk of a process again, which must not run.
func (r *rig) mendDisk(n *proc.Node) error {
	if err := unmountDisk(n.Dir); err != nil {
		return err
	}
	return mountDisk(r.image(n.Name), n.Dir)
}

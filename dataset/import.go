package dataset

import (
	"errors"
	"os"
	"path/filepath"
)

// Import writes the shards of src, and the groups of its rows where they have some, into the
// folder dir, each in a file named by the SHA-256 of its bytes in hex, and returns the manifest. It reads src twice
// and has at most about three shards and 64 MiB in memory; its temporary files in dir
// are as large as the shards. Files are not synced to disk. On an error no file or folder
// that Import made remains; an error about the data names file, row and column.
func Import(src Source, dir string, o ImportOptions) (m *Manifest, err error) {
	s, err := scanStats(src, &o)
	if err != nil {
		return nil, err
	}
	m = s.manifest()
	undo, err := makeFolder(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			m, err = nil, errors.Join(err, undo())
		}
	}()
	if err := checkDiskSpace(dir, m.tempBytes()); err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp(dir, ".import-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := sortRows(src, s, m, work, &o); err != nil {
		return nil, err
	}
	return m, moveShards(m, work, dir)
}

// tempBytes estimates the greatest number of bytes of an import's files: a spill file has 16
// bytes more for each row than a shard, and is removed once the shard is written. Names do
// not count, since they are not known yet.
func (m *Manifest) tempBytes() int64 {
	bytes := m.contentBytes()
	return bytes + bytes/int64(len(m.Shards)) + 16*int64(m.Rows)
}

// makeFolder makes dir and the parents that are missing; undo removes those
// that it made.
func makeFolder(dir string) (undo func() error, err error) {
	var made []string
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil || d == filepath.Dir(d) {
			break
		}
		made = append(made, d)
	}
	undo = func() (err error) {
		for _, d := range made {
			err = errors.Join(err, os.Remove(d))
		}
		return err
	}
	return undo, os.MkdirAll(dir, 0o777)
}

// sortRows is the second pass: rows to spill files, then shard by shard into
// files of work.
func sortRows(src Source, first *sourceStats, m *Manifest, work string, o *ImportOptions) error {
	p, s := newPartitioner(m), newSpill(m, work)
	err := scanChecked(src, o, "sort", m.Rows, func(r *Row, c *checker) error {
		first.rounded.add(r)
		row, shard, err := p.assign(r, c)
		if err != nil {
			return err
		}
		return s.add(shard, row)
	})
	if err != nil {
		return err
	}
	if err := errors.Join(p.checkCounts(), s.end()); err != nil {
		return err
	}
	first.warnRounded(o.Warn)
	if blob := p.finishGroups(o); blob != nil {
		if err := os.WriteFile(filepath.Join(work, m.Groups.Digest), blob, 0o666); err != nil {
			return err
		}
	}
	for i := range m.Shards {
		if err := writeShard(s, i, work); err != nil {
			return err
		}
		if err := o.report("store", i+1, len(m.Shards)); err != nil {
			return err
		}
	}
	return nil
}

func writeShard(s *spill, i int, work string) error {
	rows, names, err := s.build(i)
	if err != nil {
		return err
	}
	var b []byte
	b, s.m.Shards[i] = encodeShard(rows, names)
	return os.WriteFile(filepath.Join(work, s.m.Shards[i].Digest), b, 0o666)
}

// blobs lists the digests of the files that an import makes.
func (m *Manifest) blobs() (digests []string) {
	for _, s := range m.Shards {
		digests = append(digests, s.Digest)
	}
	if m.Groups != nil {
		digests = append(digests, m.Groups.Digest)
	}
	return digests
}

// moveShards moves the files of shards and groups from work to dir, or takes back those moved.
func moveShards(m *Manifest, work, dir string) (err error) {
	var moved []string
	defer func() {
		if err == nil {
			return
		}
		for _, path := range moved {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	for _, digest := range m.blobs() {
		to := filepath.Join(dir, digest)
		if _, err := os.Stat(to); err == nil {
			continue // the same bytes, from an earlier import
		}
		if err := os.Rename(filepath.Join(work, digest), to); err != nil {
			return err
		}
		moved = append(moved, to)
	}
	return nil
}

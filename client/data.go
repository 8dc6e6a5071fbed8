package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/internal/archive"
	"github.com/coppice-ldl/coppice/internal/tempdir"
	"github.com/coppice-ldl/coppice/protocol"
	"golang.org/x/sync/errgroup"
)

// Datasets asks a cluster about datasets.
type Datasets struct{ c *Client }

// Datasets returns the requests about datasets.
func (c *Client) Datasets() Datasets { return Datasets{c} }

// List lists all datasets.
func (d Datasets) List(ctx context.Context) ([]protocol.Dataset, error) {
	return d.Choose(ctx, protocol.DatasetQuery{})
}

// Choose lists the datasets that a query asks for.
func (d Datasets) Choose(ctx context.Context, q protocol.DatasetQuery) ([]protocol.Dataset, error) {
	return listed[protocol.Dataset](ctx, d.c, withQuery(at("datasets"), q.Params()))
}

// Get describes one dataset.
func (d Datasets) Get(ctx context.Context, name string) (*protocol.Dataset, error) {
	return send[protocol.Dataset](ctx, d.c, http.MethodGet, at("datasets", name), nil)
}

// Share lets all users read a dataset that is private.
func (d Datasets) Share(ctx context.Context, name string) (*protocol.Dataset, error) {
	return send[protocol.Dataset](ctx, d.c, http.MethodPost, at("datasets", name, "share"), nil)
}

// Delete deletes the name of a dataset. It is refused while a job needs the
// dataset.
func (d Datasets) Delete(ctx context.Context, name string) error {
	if _, err := d.Get(ctx, name); err != nil {
		return err
	}
	err := d.c.json(ctx, http.MethodDelete, at("datasets", name), nil, nil)
	if IsNotFound(err) { // it existed, so the answer to an earlier try may be lost
		if _, now := d.Get(ctx, name); IsNotFound(now) {
			return nil
		}
	}
	return err
}

const (
	// parallelBlobs is how many blobs travel at once.
	parallelBlobs = 4
	// uploadRounds is how often Upload asks what to send: another leader may lack blobs
	// that the last one had.
	uploadRounds = 3
)

// Import cuts src into shards in a temporary folder, stores them and gives them the name of put, whose manifest it
// sets. Importing again sends what the cluster has lost of the dataset, and changes nothing
// else. A name that exists with other content is refused. o.Progress is told of the
// upload as phase "upload".
func (d Datasets) Import(ctx context.Context, put protocol.DatasetPut, src dataset.Source,
	o importer.Options) (*protocol.Dataset, error) {
	return d.imported(ctx, put, src, o, d.upload)
}

// maxFree is how many names ImportFree tries.
const maxFree = 100

// ImportFree imports src under a name as Import does. If another dataset has the name, the beginning of the digest is
// added to it, and if need be a number. Two datasets are the same only if their data, names, row numbers, labels and
// groups are equal. A dataset that the caller may not read is another one.
func (d Datasets) ImportFree(ctx context.Context, put protocol.DatasetPut, src dataset.Source,
	o importer.Options) (*protocol.Dataset, error) {
	return d.imported(ctx, put, src, o, d.uploadFree)
}

// uploader sends a dataset whose blobs are files of dir.
type uploader func(ctx context.Context, put protocol.DatasetPut, dir string,
	report func(importer.Progress)) (*protocol.Dataset, error)

// imported cuts src into shards and uploads them.
func (d Datasets) imported(ctx context.Context, put protocol.DatasetPut, src dataset.Source, o importer.Options,
	upload uploader) (*protocol.Dataset, error) {
	dir, err := tempdir.Make("import")
	if err != nil {
		return nil, err
	}
	defer dir.Remove()
	o.Context = ctx
	if put.Manifest, err = importer.Import(src, dir.Path, o); err != nil {
		return nil, err
	}
	return upload(ctx, put, dir.Path, o.Progress)
}

// uploadFree uploads a dataset under a name that no other dataset has.
func (d Datasets) uploadFree(ctx context.Context, put protocol.DatasetPut, dir string,
	report func(importer.Progress)) (*protocol.Dataset, error) {
	name, m := put.Name, put.Manifest
	for n := 1; ; n++ {
		have, err := d.Get(ctx, put.Name)
		switch {
		case IsNotFound(err), err == nil && have.Digest == m.Digest() && m.Same(have.Manifest) == nil:
			made, err := d.upload(ctx, put, dir, report) // of a known dataset it sends what the cluster has lost
			if !IsConflict(err) || n == maxFree {
				return made, err
			}
		case err != nil:
			return nil, err
		}
		if put.Name = name + "-" + m.Digest()[:8]; n > 1 {
			put.Name += fmt.Sprintf("-%d", n)
		}
	}
}

// upload stores the blobs of a dataset and gives them its name. They are files of dir that are
// named by their digests. It sends what the leader lacks, so uploading again repairs a dataset
// that has lost blobs.
func (d Datasets) upload(ctx context.Context, put protocol.DatasetPut, dir string,
	report func(importer.Progress)) (*protocol.Dataset, error) {
	m := put.Manifest
	own := make(map[string]bool, len(m.Shards)) // so that no server makes a client send other files
	for _, s := range m.Shards {
		own[s.Digest] = true
	}
	if m.Groups != nil {
		own[m.Groups.Digest] = true
	}
	for n := 1; ; n++ {
		check, err := send[protocol.DatasetCheck](ctx, d.c, http.MethodPost, at("datasets", "check"), put)
		if err != nil {
			return nil, err
		}
		lacking := slices.Compact(slices.Sorted(slices.Values(check.Lacking)))
		lacking = slices.DeleteFunc(lacking, func(d string) bool { return !own[d] })
		if err := d.putFiles(ctx, lacking, dir, report); err != nil {
			return nil, err
		}
		var made protocol.Dataset
		// A new leader may have to fetch blobs first.
		err = d.c.do(ctx, &call{method: http.MethodPost, path: at("datasets"), in: put, out: &made, timeout: blobTimeout})
		if err == nil || n == uploadRounds || len(check.Lacking) == 0 && !NeedsBlobs(err) {
			return &made, err
		}
	}
}

// putFiles stores files of dir that are named by their digests.
func (d Datasets) putFiles(ctx context.Context, digests []string, dir string, report func(importer.Progress)) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelBlobs)
	var done atomic.Int64
	reporting := make(chan struct{}, 1) // full while report is called
	for _, digest := range digests {
		g.Go(func() error {
			path := filepath.Join(dir, digest)
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			err = d.c.do(ctx, &call{
				method: http.MethodPut, path: at("blobs", digest), size: info.Size(), timeout: blobTimeout,
				body: func() (io.ReadCloser, error) { return os.Open(path) },
			})
			if err != nil {
				return err
			}
			n := done.Add(1)
			if report != nil {
				reporting <- struct{}{}
				report(importer.Progress{Phase: "upload", Done: int(n), Of: len(digests), Part: float64(n) / float64(len(digests))})
				<-reporting
			}
			return nil
		})
	}
	return g.Wait()
}

// Shards fetches the shards of an imported dataset into memory.
func (d Datasets) Shards(ctx context.Context, m *dataset.Manifest) ([]*dataset.Rows, error) {
	shards := make([]*dataset.Rows, len(m.Shards))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelBlobs)
	for i, s := range m.Shards {
		g.Go(func() error {
			b, err := d.c.Blobs().Get(ctx, s.Digest)
			if err != nil {
				return err
			}
			rows, err := dataset.DecodeShard(b)
			if err != nil {
				return err
			}
			shards[i] = rows
			return m.CheckShard(i, rows)
		})
	}
	return shards, g.Wait()
}

// Blobs asks a cluster about blobs.
type Blobs struct{ c *Client }

// Blobs returns the requests about blobs.
func (c *Client) Blobs() Blobs { return Blobs{c} }

// Get returns a blob after it has checked the digest.
func (s Blobs) Get(ctx context.Context, digest string) ([]byte, error) {
	b, err := s.c.bytes(ctx, at("blobs", digest))
	if err != nil {
		return nil, err
	}
	if got := sha256.Sum256(b); hex.EncodeToString(got[:]) != digest {
		return nil, fmt.Errorf("the bytes received for blob %.12s do not match its digest", digest)
	}
	return b, nil
}

// Withheld adds to the error of reading a blob of a private job or experiment who may read it: to other callers, a
// cluster says that there is no such blob. kind and name say what the blob belongs to.
func Withheld(err error, kind, name string, of protocol.Ownership) error {
	if !of.Private || !IsNotFound(err) {
		return err
	}
	return &Error{Status: http.StatusNotFound, Message: fmt.Sprintf("%[1]s %[2]s is private, so only %[3]s and admins "+
		"may read it; one of them can share it: coppice %[1]s share %[2]s (%[4]v)", kind, name, of.Owner, err)}
}

// Sending sends blobs, and then a request that refers to them. It does so again, at most three times, if the leader of
// the request does not know that this caller has sent them: another coordinator led before.
func (s Blobs) Sending(ctx context.Context, blobs [][]byte, request func() error) error {
	for n := 1; ; n++ {
		for _, b := range blobs {
			if _, err := s.Put(ctx, b); err != nil {
				return err
			}
		}
		if err := request(); n == uploadRounds || !NeedsBlobs(err) {
			return err
		}
	}
}

// NeedsBlobs reports whether an error says that blobs must be sent before the request, perhaps again.
func NeedsBlobs(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Status == protocol.StatusSendBlob
}

// Put stores bytes on a quorum of the coordinators and returns their digest.
func (s Blobs) Put(ctx context.Context, b []byte) (digest string, err error) {
	sum := sha256.Sum256(b)
	digest = hex.EncodeToString(sum[:])
	return digest, s.c.do(ctx, &call{
		method: http.MethodPut, path: at("blobs", digest), size: int64(len(b)), timeout: blobTimeout,
		body: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil },
	})
}

// Models asks a cluster about models.
type Models struct{ c *Client }

// Models returns the requests about models.
func (c *Client) Models() Models { return Models{c} }

// List lists all models in the order of their jobs.
func (m Models) List(ctx context.Context) ([]protocol.ModelInfo, error) {
	return m.Choose(ctx, protocol.ModelQuery{})
}

// Choose lists the models that a query asks for.
func (m Models) Choose(ctx context.Context, q protocol.ModelQuery) ([]protocol.ModelInfo, error) {
	return listed[protocol.ModelInfo](ctx, m.c, withQuery(at("models"), q.Params()))
}

// Get returns a model file: of a job by its name, or of job/fold.
func (m Models) Get(ctx context.Context, name string) ([]byte, error) {
	return m.c.bytes(ctx, modelAt(name))
}

// modelAt returns the path of a model. Its name may have several elements.
func modelAt(name string) string {
	return at(append([]string{"models"}, strings.Split(name, "/")...)...)
}

// Delete deletes the models of a done job, by id or name, and keeps the job.
// Deleting twice does no harm. The model of one fold is refused.
func (m Models) Delete(ctx context.Context, job string) (*protocol.JobInfo, error) {
	if !strings.Contains(job, "/") {
		id, err := m.c.Jobs().id(ctx, job)
		if err != nil {
			return nil, err
		}
		job = strconv.FormatUint(id, 10)
	}
	return send[protocol.JobInfo](ctx, m.c, http.MethodDelete, modelAt(job), nil)
}

const (
	backupTimeout = 30 * 24 * time.Hour
	// firstSilence bounds the wait for the first byte of a backup, which comes once the
	// coordinator has all blobs.
	firstSilence = 10 * time.Minute
	// backupSilence bounds the wait for each of the others.
	backupSilence = 30 * time.Second
)

// errMute says why a backup was given up.
var errMute = errors.New("the coordinator stopped sending")

// BackupProgress is how far a backup is.
type BackupProgress struct {
	Blobs, OfBlobs int
	Bytes, OfBytes int64
}

// Backup writes a backup of the cluster to w, and checks all of it on the way. If the
// backup breaks off, it returns an error, and w has a part of the backup. progress may be
// nil.
func (c *Client) Backup(ctx context.Context, w io.Writer, progress func(BackupProgress)) (h archive.Header, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(firstSilence, func() { cancel(errMute) })
	defer quiet.Stop()
	each := func(h *archive.Header, blobs int, bytes int64) {
		if progress != nil {
			progress(BackupProgress{Blobs: blobs, OfBlobs: h.Blobs, Bytes: bytes, OfBytes: h.Bytes})
		}
	}
	var broken error // after the first bytes, the request is not sent again
	err = c.do(ctx, &call{method: http.MethodGet, path: at("backup"), timeout: backupTimeout,
		take: func(r io.Reader) error {
			heard := &noisyReader{r, func() { quiet.Reset(backupSilence) }}
			h, broken = archive.Verify(io.TeeReader(heard, w), each)
			return nil
		}})
	if err = errors.Join(err, broken); err == nil {
		return h, nil
	}
	if cause := context.Cause(ctx); errors.Is(cause, errMute) {
		return h, fmt.Errorf("%w: no bytes arrived for %v", errMute, backupSilence)
	} else if cause != nil {
		return h, cause
	}
	return h, err
}

package predict

import (
	"io"

	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// ReadHead reads what a model file of size bytes says of its model. The model itself is neither read nor checked.
func ReadHead(r io.ReaderAt, size int64) (*modelfile.Head, *pipeline.Provenance, error) {
	h, err := modelfile.ReadHead(r, size)
	if err != nil {
		return nil, nil, err
	}
	p, err := decodeProvenance(h.Provenance)
	return h, p, err
}

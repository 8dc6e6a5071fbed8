package client

import (
	"errors"
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/internal/units"
)

// The bounds of answers: what exceeds them is not read.
const (
	maxJSON  = 256 << 20
	maxBytes = 4 << 30 // a blob or model
)

var errLong = errors.New("the answer is too long")

// atMost returns r, which fails after limit bytes should there be more; a limit of 0
// is none.
func atMost(r io.Reader, limit int64) io.Reader {
	if limit <= 0 {
		return r
	}
	return &limited{r: r, limit: limit, left: limit}
}

type limited struct {
	r           io.Reader
	limit, left int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.r.Read(p[:min(int64(len(p)), l.left+1)])
	if l.left -= int64(n); l.left < 0 {
		return n - 1, fmt.Errorf("%w: it has more than %s", errLong, units.Format(l.limit))
	}
	return n, err
}

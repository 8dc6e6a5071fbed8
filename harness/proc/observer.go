package proc

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/internal/certs"
)

// Observer asks processes at their HTTP addresses. Each question is sent once.
type Observer struct {
	http   *http.Client
	scheme string
}

// NewObserver returns an observer with certificates; nil means in the clear. Coordinators and workers may answer.
func NewObserver(source *certs.Source, t *http.Transport) *Observer {
	return &Observer{&http.Client{Transport: source.Transport(t, certs.Worker)}, source.URLScheme()}
}

// Close closes the connections that wait for a question.
func (o *Observer) Close() { o.http.CloseIdleConnections() }

// Get returns an answer, and at most so many of its bytes.
func (o *Observer) Get(ctx context.Context, address, path string, most int64) (status int, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.scheme+"://"+address+path, nil)
	if err != nil {
		return 0, nil, err
	}
	response, err := o.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, most))
	return response.StatusCode, body, err
}

// Series are the values of a process's metrics, by name with labels as they are
// exposed: coppice_phase_seconds_sum{phase="commit"}.
type Series map[string]float64

// maxExposition bounds what is read of a process's metrics, in bytes.
const maxExposition = 8 << 20

// scrapeTimeout bounds one look at a process's metrics.
const scrapeTimeout = 2 * time.Second

// Scrape reads the metrics of a process.
func (o *Observer) Scrape(ctx context.Context, address string) (Series, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	status, body, err := o.Get(ctx, address, "/metrics", maxExposition)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("metrics of %s: status %d", address, status)
	}
	if err != nil {
		return nil, err
	}
	return parseSeries(bytes.NewReader(body))
}

// parseSeries reads Prometheus's text format. Its lines are comments, or a name
// with labels, a blank and a value.
func parseSeries(r io.Reader) (Series, error) {
	s := make(Series)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		cut := strings.LastIndexByte(line, ' ')
		if cut < 0 || line[0] == '#' {
			continue
		}
		v, err := strconv.ParseFloat(line[cut+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("the value of a metric is not a number: %q", line)
		}
		s[line[:cut]] = v
	}
	return s, lines.Err()
}

package proc

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Series are the values of a process's metrics, by name with labels as they are
// exposed: coppice_phase_seconds_sum{phase="commit"}.
type Series map[string]float64

// maxExposition bounds what is read of a process's metrics, in bytes.
const maxExposition = 8 << 20

// scrapeTimeout bounds one look at a process's metrics.
const scrapeTimeout = 2 * time.Second

// Scrape reads the metrics that a process serves at an HTTP address.
func Scrape(ctx context.Context, address string) (Series, error) {
	return ScrapeBy(ctx, http.DefaultClient, address)
}

// ScrapeBy is Scrape by an HTTP client of the caller's.
func ScrapeBy(ctx context.Context, by *http.Client, address string) (Series, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := by.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics of %s: %s", address, response.Status)
	}
	return parseSeries(io.LimitReader(response.Body, maxExposition))
}

// parseSeries reads Prometheus's text format, whose lines are comments, or a name
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

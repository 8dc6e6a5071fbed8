package network

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestLongFactors: a client may send a list of very many layers. Reading it takes no time that grows
// with the square of their number.
func TestLongFactors(t *testing.T) {
	names := make([]string, 200_000)
	for i := range names {
		names[i] = fmt.Sprintf("layer%d:2", i)
	}
	began := time.Now()
	list, err := parseFactors(strings.Join(names, ","), true)
	if took := time.Since(began); err != nil || len(list) != len(names) || took > 5*time.Second {
		t.Errorf("%d layers, error %v, after %v", len(list), err, took)
	}
	_, err = parseFactors("a:1,b:2,b:3,a:4", true)
	if err == nil || err.Error() != `the list has "b" twice` {
		t.Errorf("two layers twice: error %v", err)
	}
}

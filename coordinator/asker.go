package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
)

const askTimeout = 2 * time.Second // of one question

// asker asks other coordinators. Each connection serves one question, so no connection
// stays open.
type asker struct {
	http   *http.Client
	scheme string // of URLs
}

// newAsker returns an asker with the certificates of this process; nil: in the clear.
func newAsker(source *certs.Source) *asker {
	return &asker{&http.Client{Transport: source.Transport(&http.Transport{DisableKeepAlives: true})}, source.URLScheme()}
}

// get requests a path of a coordinator. The caller closes the body.
func (k *asker) get(ctx context.Context, address, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, k.scheme+"://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	return k.http.Do(request)
}

// ask gets a JSON value from a coordinator.
func (k *asker) ask(ctx context.Context, address, path string, v any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	response, err := k.get(ctx, address, path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	b, err := io.ReadAll(io.LimitReader(response.Body, protocol.MaxJSON))
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	if response.StatusCode != http.StatusOK {
		if certs.Clear(response.StatusCode, b) {
			return fmt.Errorf("%s: %w", address, certs.ErrSecure)
		}
		return fmt.Errorf("%s: %s", address, response.Status)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	return nil
}

// askSelf asks a coordinator who it is.
func (k *asker) askSelf(ctx context.Context, address string) (s protocol.Self, err error) {
	err = k.ask(ctx, address, "/v1/self", &s)
	return s, err
}

package coordinator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
)

const askTimeout = 2 * time.Second // of one question

// asker asks other coordinators. Each connection serves one question, so no connection
// stays open.
type asker struct {
	http   *http.Client
	scheme string // of URLs
	log    *slog.Logger

	mu   sync.Mutex
	said time.Time // when the log last named certs.ErrSecure
}

// ErrRemoved ends a coordinator that was removed from its cluster.
var ErrRemoved = errors.New("this coordinator was removed from its cluster")

// newAsker returns an asker with the certificates of this process; nil: in the clear.
func newAsker(source *certs.Source, log *slog.Logger) *asker {
	return &asker{http: &http.Client{Transport: source.Transport(&http.Transport{DisableKeepAlives: true})}, scheme: source.URLScheme(), log: log}
}

// get requests a path of a coordinator. The caller closes the body.
func (k *asker) get(ctx context.Context, address, path string) (*http.Response, error) {
	return k.send(ctx, http.MethodGet, address, path, nil)
}

func (k *asker) send(ctx context.Context, method, address, path string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, k.scheme+"://"+address+path, body)
	if err != nil {
		return nil, err
	}
	return k.http.Do(request)
}

// post sends a JSON value to a coordinator.
func (k *asker) post(ctx context.Context, address, path string, v any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	response, err := k.send(ctx, http.MethodPost, address, path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", address, response.Status)
	}
	return nil
}

// ask gets a JSON value from a coordinator. The error wraps ErrRemoved if the coordinator answers that
// this one was removed, and refuses its certificate.
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
	if response.StatusCode == access.StatusRemoved {
		return fmt.Errorf("%s: %w", address, ErrRemoved)
	}
	if response.StatusCode != http.StatusOK {
		if certs.Clear(response.StatusCode, b) {
			k.warnSecure(address)
			return fmt.Errorf("%s: %w", address, certs.ErrSecure)
		}
		return fmt.Errorf("%s: %s", address, response.Status)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	return nil
}

// warnSecure logs at most once a minute that another coordinator uses TLS: other errors of a process
// in the clear, such as the end of a connection, do not name the reason.
func (k *asker) warnSecure(address string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := time.Now(); now.Sub(k.said) >= time.Minute {
		k.said = now
		k.log.Error(certs.ErrSecure.Error(), "coordinator", address)
	}
}

// askSelf asks a coordinator who it is.
func (k *asker) askSelf(ctx context.Context, address string) (s protocol.Self, err error) {
	err = k.ask(ctx, address, "/v1/self", &s)
	return s, err
}

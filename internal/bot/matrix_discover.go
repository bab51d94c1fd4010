package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"switchyard/internal/domain"
)

// discover finds the client-server API of the configured homeserver: an address, or just a name, whose
// /.well-known/matrix/client may point to another address.
func discover(ctx context.Context, client *http.Client, entered string) (*matrixClient, error) {
	entered = strings.TrimRight(strings.TrimSpace(entered), "/")
	if !strings.Contains(entered, "://") {
		entered = "https://" + entered
	}
	address, err := url.Parse(entered)
	if err != nil || address.Host == "" || address.Scheme != "https" && address.Scheme != "http" {
		return nil, domain.Errorf(domain.Unauthorized, "Homeserver URL: must be like https://matrix.example.org. Correct it and save.")
	}
	direct := &matrixClient{client, entered}
	directErr := direct.probe(ctx)
	if directErr == nil {
		return direct, nil
	}
	if base := wellKnown(ctx, client, entered); base != "" {
		referred := &matrixClient{client, base}
		if referred.probe(ctx) == nil {
			return referred, nil
		}
	}
	var refused *matrixError
	if errors.As(directErr, &refused) {
		if refused.status >= http.StatusInternalServerError {
			return nil, domain.WrapError(domain.BadGateway, directErr, fmt.Sprintf("The homeserver at %s has a problem (status %d). The bot keeps trying.", address.Host, refused.status))
		}
		return nil, domain.WrapError(domain.BadGateway, directErr, fmt.Sprintf("%s answers, but is not a Matrix homeserver. Check the Homeserver URL.", address.Host))
	}
	return nil, directErr
}

// probe reports whether a Matrix server answers.
func (c *matrixClient) probe(ctx context.Context) error {
	var answer struct {
		Versions []string `json:"versions"`
	}
	err := waitOut(ctx, func() error {
		return c.do(ctx, matrixCall{method: http.MethodGet, path: "/versions", answer: &answer})
	})
	if err == nil && len(answer.Versions) == 0 {
		return &matrixError{status: http.StatusOK, message: "no versions"}
	}
	return err
}

// wellKnown returns the address in a server's /.well-known/matrix/client, "" for none.
func wellKnown(ctx context.Context, client *http.Client, server string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/.well-known/matrix/client", nil)
	if err != nil {
		return ""
	}
	response, err := client.Do(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	var answer struct {
		Homeserver struct {
			BaseURL string `json:"base_url"`
		} `json:"m.homeserver"`
	}
	if response.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(response.Body, 1<<16)).Decode(&answer) != nil {
		return ""
	}
	base := strings.TrimRight(answer.Homeserver.BaseURL, "/")
	if u, err := url.Parse(base); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return base
}

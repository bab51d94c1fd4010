package matrix

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"switchyard/internal/domain"
)

// discover finds the client-server API of the configured homeserver: an address, or just a name, whose
// /.well-known/matrix/client may point to another address.
func discover(ctx context.Context, client *http.Client, entered string) (*apiClient, error) {
	entered = strings.TrimRight(strings.TrimSpace(entered), "/")
	if !strings.Contains(entered, "://") {
		entered = "https://" + entered
	}
	if !isAddress(entered) {
		return nil, domain.Errorf(domain.Unauthorized,
			"Homeserver URL: must be like https://matrix.example.org. Correct it and save.")
	}
	direct, err := probe(ctx, client, entered)
	if err == nil {
		return direct, nil
	}
	if base := wellKnown(ctx, client, entered); base != "" {
		if referred, err := probe(ctx, client, base); err == nil {
			return referred, nil
		}
	}
	_, host, _ := strings.Cut(entered, "://")
	switch status := asRefusal(err).status; {
	case status >= http.StatusInternalServerError:
		err = domain.WrapError(domain.BadGateway, err,
			fmt.Sprintf("The homeserver at %s has a problem (status %d). The bot keeps trying.", host, status))
	case status > 0:
		err = domain.WrapError(domain.BadGateway, err,
			host+" answers, but is not a Matrix homeserver. Check the Homeserver URL.")
	}
	return nil, err
}

func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
}

// probe returns a client of the Matrix server at an address, an error if there is none.
func probe(ctx context.Context, client *http.Client, address string) (*apiClient, error) {
	var answer struct {
		Versions []string `json:"versions"`
	}
	c := &apiClient{client, address + "/_matrix/client"}
	err := c.do(ctx, apiCall{method: http.MethodGet, path: "/versions", answer: &answer})
	if err == nil && len(answer.Versions) == 0 {
		err = &apiError{status: http.StatusOK, message: "no versions"}
	}
	return c, err
}

// wellKnown returns the address in a server's /.well-known/matrix/client, "" for none.
func wellKnown(ctx context.Context, client *http.Client, server string) string {
	var answer struct {
		Homeserver struct {
			BaseURL string `json:"base_url"`
		} `json:"m.homeserver"`
	}
	c := &apiClient{client, server}
	err := c.once(ctx, apiCall{method: http.MethodGet, path: "/.well-known/matrix/client", answer: &answer})
	base := strings.TrimRight(answer.Homeserver.BaseURL, "/")
	if err != nil || !isAddress(base) {
		return ""
	}
	return base
}

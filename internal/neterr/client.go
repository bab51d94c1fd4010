package neterr

import "net/http"

// Client returns a client for calls that carry secrets. It follows no redirects, which would send these elsewhere, and
// reading an answer of more than most bytes fails.
func Client(transport http.RoundTripper, most int64) *http.Client {
	return &http.Client{
		Transport:     sizeLimit{transport, most},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type sizeLimit struct {
	http.RoundTripper
	most int64
}

func (l sizeLimit) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, l.most)
	}
	return response, err
}

package signin

import "net/http"

// SetTransport makes the client talk through t.
func (c *Client) SetTransport(t http.RoundTripper) { c.transport = t }

// NewTransport exports newTransport for tests that change how it dials.
var NewTransport = newTransport

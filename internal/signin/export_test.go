package signin

import "net/http"

// Challenge is challenge, for its test vector.
var Challenge = challenge

// SetTransport makes the client talk through t.
func (c *Client) SetTransport(t http.RoundTripper) { c.transport = t }

// NewTransport is newTransport, for tests that change how it dials.
var NewTransport = newTransport

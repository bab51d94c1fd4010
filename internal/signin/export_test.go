package signin

import "net/http"

// Challenge exports challenge for its test vector.
var Challenge = challenge

// SetTransport makes the client talk through t.
func (c *Client) SetTransport(t http.RoundTripper) { c.transport = t }

// NewTransport exports newTransport for tests that change how it dials.
var NewTransport = newTransport

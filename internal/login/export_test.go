package login

import "time"

// SetCallLimit sets the time limit of requests to the provider.
func (p *Provider) SetCallLimit(limit time.Duration) { p.http.Timeout = limit }

package login

import "time"

// SetCallLimit bounds each request to the provider.
func (p *Provider) SetCallLimit(limit time.Duration) { p.http.Timeout = limit }

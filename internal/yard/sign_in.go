package yard

// SignInStatus is the state of the stored credentials.
type SignInStatus struct {
	Authenticated   bool   `json:"authenticated"`
	Expired         bool   `json:"expired"`
	ExpiresAt       uint64 `json:"expires_at"` // Unix milliseconds
	HasRefreshToken bool   `json:"has_refresh_token"`
}

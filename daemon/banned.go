package daemon

import (
	"net/netip"

	"evenpool/probe"
	"evenpool/sources/proxyurl"
)

// maxBannedBytes bounds a list of banned proxies.
const maxBannedBytes = 32 << 20

// bannedFile is a pool's list of banned proxies, a probe.Bans. It is read again when
// it changes: an empty file bans nobody, one that is gone or not sound leaves the
// list as it was.
type bannedFile struct{ *keptFile[*probe.Banned] }

func openBanned(path string) (bannedFile, error) {
	f, err := openKept(path, maxBannedBytes, probe.ParseBanned)
	return bannedFile{f}, err
}

// Contains is probe.Bans'.
func (f bannedFile) Contains(e proxyurl.Endpoint) (entry string, banned bool) {
	return f.get().Contains(e)
}

// ContainsAddr is probe.Bans'.
func (f bannedFile) ContainsAddr(addr netip.Addr) (entry string, banned bool) {
	return f.get().ContainsAddr(addr)
}

// OpenBanned reads a list of banned proxies as a pool's banned_file is read.
func OpenBanned(path string) (probe.Bans, error) {
	f, err := openBanned(path)
	if err != nil {
		return nil, err
	}
	return f, nil
}

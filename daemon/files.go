package daemon

import (
	"crypto/x509"
	"errors"

	"evenpool/daemon/config"
	"evenpool/probe"
)

// FilesError says which of the files that the configuration names cannot be used:
// all of them, a line each, with the key that names it.
type FilesError struct{ err error }

func (e *FilesError) Error() string { return e.err.Error() }

func (e *FilesError) Unwrap() error { return e.err }

// files are what the configuration names, as it was at the start.
type files struct {
	geo     *GeoIP
	targets map[string]*target
	pools   []poolFiles // in the configuration's order
}

type poolFiles struct {
	judges     []probe.Judge
	banned     *bannedFile    // nil: none
	proxyRoots *x509.CertPool // nil: the system's
}

// openFiles reads all files that the configuration names. Its error is a *FilesError.
func openFiles(cfg *config.Config) (f files, err error) {
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	f.geo, err = OpenGeoIP(cfg.GeoIP.Country, cfg.GeoIP.ASN)
	note(err)
	judges := map[string]probe.Judge{}
	for _, each := range cfg.Judges {
		judges[each.Name], err = each.Prober()
		note(err)
	}
	f.targets = map[string]*target{}
	for _, each := range cfg.Targets {
		t, err := each.Prober()
		note(err)
		f.targets[each.Name] = newTarget(t, each.MinInterval)
	}
	for _, each := range cfg.Pools {
		var p poolFiles
		for _, name := range each.Judges {
			p.judges = append(p.judges, judges[name])
		}
		if path := each.Eligibility.BannedFile; path != "" {
			banned, err := openBanned(path)
			note(inKey("pool "+each.Name+": banned_file", err))
			p.banned = &banned
		}
		p.proxyRoots, err = each.Probe.ProxyRootCAs()
		note(inKey("pool "+each.Name, err))
		f.pools = append(f.pools, p)
	}
	if err := errors.Join(errs...); err != nil {
		return files{}, &FilesError{err}
	}
	return f, nil
}

// CheckFiles says whether New would take the files that a configuration names; its
// error is New's.
func CheckFiles(cfg *config.Config) error {
	_, err := openFiles(cfg)
	return err
}

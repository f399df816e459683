package config

import (
	"cmp"
	"time"
)

// Defaults are those that depend on how the daemon was started, and so come from
// cmd. A field left empty has the default that its twin in Config states.
type Defaults struct {
	SocketPath string // for Socket.Path
	StateDir   string // for Config.StateDir
}

func (d Defaults) config() *Config {
	return &Config{
		Redis:             Redis{PoolSize: 8},
		Socket:            Socket{Path: cmp.Or(d.SocketPath, "/run/evenpool/evenpool.sock"), Mode: 0o660},
		StateDir:          cmp.Or(d.StateDir, "/var/lib/evenpool"),
		MaxDialsPerSecond: 1000,
	}
}

func defaultJudge() Judge { return Judge{} }

func defaultExpect() *Expect { return &Expect{Status: 200} }

func defaultSource() Source {
	return Source{
		Format:        "auto",
		Schedule:      mustSchedule("*/30 * * * *"),
		Timeout:       30 * time.Second,
		MaxBytes:      16 << 20,
		MaxCandidates: 200_000,
	}
}

func defaultPool() Pool {
	return Pool{
		MaxCandidates: 200_000,
		Probe: Probe{
			Schedule:       mustSchedule("*/5 * * * *"),
			Timeout:        8 * time.Second,
			ConnectTimeout: 4 * time.Second,
			ConfirmAfter:   5 * time.Second,
			Concurrency:    512,
		},
		Eligibility: defaultEligibility(),
		Guard: Guard{
			MaxRetired: 20,
			PanicAbove: 50,
			MaxFreeze:  15 * time.Minute,
		},
		Allocation: Allocation{
			Start:       "min",
			Restore:     "floor",
			ForgetAfter: 7 * 24 * time.Hour,
		},
	}
}

func mustSchedule(spec string) Schedule {
	s, err := ParseSchedule(spec)
	if err != nil {
		panic(err)
	}
	return s
}

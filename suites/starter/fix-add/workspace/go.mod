module add

go 1.22

#!/bin/sh
# Written by dqx_airflow. This Java lacks the module {module}, with which Spark starts its
# JVMs and which it can do without.
for argument do
  shift
  [ "$argument" = "--add-modules={module}" ] || set -- "$@" "$argument"
done
exec {java} "$@"

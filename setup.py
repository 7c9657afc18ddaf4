"""Everything is in pyproject.toml, but for one thing that setuptools leaves out of editable installs."""

from setuptools import Distribution, setup


class DistributionWithData(Distribution):
    """Has the method by which the editable_wheel command asks whether there are data files to install."""

    has_data = Distribution.has_data_files


setup(distclass=DistributionWithData)
